//! The files that `analyze` writes: pictures, graphs for other programs, lists, a page.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use baler_analysis::traces::{
    Graph, Level, SequenceDiagram, TraceAnalysis, TraceStage, report as page,
};
use serde_json::json;

use crate::exit::Failure;
use crate::output;

/// The maximum number of classes with files of their own. The classes with the most traces come
/// first.
const MAX_CLASSES: usize = 20;

/// The maximum number of nodes in a picture. The other formats have all nodes.
const MAX_DRAWN: usize = 2_000;

/// Lists traces in a file of the folder while they are analysed.
///
/// # Errors
///
/// The folder or the file cannot be made.
pub(super) fn with_list(traces: TraceStage, folder: &Path) -> Result<TraceStage, Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::output(folder.display(), &error))?;
    let path = folder.join("traces.jsonl");
    let file = File::create(&path).map_err(|error| Failure::output(path.display(), &error))?;
    Ok(traces.with_list(BufWriter::new(file), path.display().to_string()))
}

/// Writes the page.
///
/// # Errors
///
/// The file cannot be written.
pub(in crate::commands) fn report(
    traces: &TraceStage,
    path: &Path,
    title: &str,
) -> Result<(), Failure> {
    output::whole_file(path, &traces.read(|analysis| page(analysis, title)))
}

/// Writes everything but the list of traces into the folder.
///
/// # Errors
///
/// A file cannot be written.
pub(super) fn write(
    analysis: &TraceAnalysis,
    folder: &Path,
    self_loops: bool,
) -> Result<(), Failure> {
    let file = |name: &str, text: &str| output::whole_file(&folder.join(name), text);
    let graph = |name: &str, graph: &Graph| {
        file(&format!("{name}.dot"), &graph.dot())?;
        file(&format!("{name}.graphml"), &graph.graphml())?;
        match graph.nodes.len() > MAX_DRAWN {
            true => Ok(()),
            false => file(&format!("{name}.svg"), &graph.svg()),
        }
    };
    let (operations, profile) = (analysis.operations(), analysis.profile());
    let tree = profile.call_tree();
    for (level, name) in Level::ALL {
        graph(name, &Graph::of(tree, operations, level, self_loops))?;
    }
    let without_hosts = tree.without_hosts(operations);
    graph(
        "call-tree",
        &Graph::of_tree(&without_hosts, operations, false),
    )?;
    graph("host-call-tree", &Graph::of_tree(tree, operations, true))?;
    file("flame.folded", &analysis.folded())?;
    let classes = profile.classes_without_hosts(operations);
    let mut list = String::new();
    for (number, class) in (1..).zip(&classes) {
        let line = json!({
            "class": number,
            "traces": class.traces,
            "mean_ns": class.total_ns / class.traces.max(1),
            "calls": class.example.calls.len(),
            "max_depth": class.example.max_depth(),
            "example": class.example.id,
        });
        list.push_str(&format!("{line}\n"));
        if number > MAX_CLASSES {
            continue;
        }
        let diagram = SequenceDiagram::of(class.example, operations);
        file(&format!("class-{number}.puml"), &diagram.plantuml())?;
        file(&format!("class-{number}.svg"), &diagram.svg())?;
        let tree = Graph::of_trace(class.example, operations);
        file(&format!("class-{number}-calls.dot"), &tree.dot())?;
    }
    file("classes.jsonl", &list)
}
