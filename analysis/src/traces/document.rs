//! An analysis as one JSON document, as folded stacks, and as a page for a browser.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::ser::{SerializeMap as _, SerializeStruct as _};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::counts::add_count;
use super::graph::{ENTRY, Graph, GraphEdge, Level};
use super::layout::{self, Placement};
use super::operations::{Operation, Operations};
use super::profile::Timed;
use super::tree::{Trace, nanos_between};
use super::{ClosedTrace, Outcome, TraceAnalysis};
use crate::text::PAGE_STYLE;

/// The page without its data.
const PAGE: &str = include_str!("report.html");

/// The place of the style in the page.
const STYLE_PLACE: &str = "/*STYLE*/";

/// The place of the data in the page.
const DATA: &str = "/*DATA*/";

/// The most sessions, and the most classes, in a document.
const MAX_LISTED: usize = 1_000;

/// The most classes with an example trace in the page.
const MAX_EXAMPLES: usize = 30;

/// The most calls of a trace in the page.
const MAX_CALLS: usize = 400;

/// The most nodes of a graph in the page. Nobody can read a larger one.
const MAX_NODES: usize = 400;

/// The results as one JSON document. Its long lists are made while they are written, one after the
/// other.
#[derive(Debug)]
pub struct TraceDocument<'a> {
    analysis: &'a TraceAnalysis,
    self_loops: bool,
    figures: Value,
    classes: Vec<Value>,
}

/// How often nodes of a level called each other, sorted by name.
#[derive(Debug)]
pub struct Dependencies<'a> {
    /// By position; position 0 is the entry.
    names: Vec<Cow<'a, str>>,
    edges: Vec<GraphEdge>,
}

/// Calls from one node to another, by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Dependency<'a> {
    /// The calling node.
    pub from: &'a str,
    /// The called node.
    pub to: &'a str,
    /// The number of calls.
    pub count: u64,
}

impl TraceDocument<'_> {
    /// Returns the counts of traces.
    pub fn figures(&self) -> &Value {
        &self.figures
    }

    /// Returns the figures of the operations; operations with the most calls come first.
    pub fn operations(&self) -> impl ExactSizeIterator<Item = Value> {
        let timed = self.analysis.timed().into_iter();
        timed.map(|it| operation_figures(&it))
    }

    /// Returns the dependencies of a level.
    pub fn dependencies(&self, level: Level) -> Dependencies<'_> {
        match level {
            // By their signatures, as in the list of operations.
            Level::Operations => self.analysis.operation_dependencies(self.self_loops),
            _ => self.analysis.graph(level, self.self_loops).into(),
        }
    }
}

impl Serialize for TraceDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sessions = self.analysis.profile().sessions().iter();
        let sessions = sessions.take(MAX_LISTED).map(|(name, session)| {
            json!({
                "session": name,
                "traces": session.traces,
                "first_unix_ns": session.span.0,
                "last_unix_ns": session.span.1,
            })
        });
        let mut fields = serializer.serialize_struct("TraceDocument", 6)?;
        fields.serialize_field("traces", &self.figures)?;
        fields.serialize_field("operations", &List(|| self.operations()))?;
        fields.serialize_field("dependencies", &self.dependencies(Level::Operations))?;
        fields.serialize_field("graphs", &Graphs(self))?;
        fields.serialize_field("classes", &self.classes)?;
        fields.serialize_field("sessions", &sessions.collect::<Vec<_>>())?;
        fields.end()
    }
}

/// The dependencies of all levels except operations.
struct Graphs<'a>(&'a TraceDocument<'a>);

impl Serialize for Graphs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut graphs = serializer.serialize_map(Some(Level::ALL.len() - 1))?;
        for (level, name) in Level::ALL {
            if level != Level::Operations {
                graphs.serialize_entry(&name.replace('-', "_"), &self.0.dependencies(level))?;
            }
        }
        graphs.end()
    }
}

/// A list that is made while it is written.
struct List<F>(F);

impl<F: Fn() -> I, I: IntoIterator<Item: Serialize>> Serialize for List<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

impl<'a> Dependencies<'a> {
    fn new(names: Vec<Cow<'a, str>>, mut edges: Vec<GraphEdge>) -> Self {
        let name = |edge: &GraphEdge| (&*names[edge.from], &*names[edge.to]);
        edges.sort_by(|a, b| name(a).cmp(&name(b)));
        Self { names, edges }
    }

    /// Returns the dependencies, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Dependency<'_>> {
        self.edges.iter().map(|edge| Dependency {
            from: &self.names[edge.from],
            to: &self.names[edge.to],
            count: edge.calls,
        })
    }
}

impl From<Graph> for Dependencies<'_> {
    fn from(graph: Graph) -> Self {
        let names = graph.nodes.into_iter();
        let names = names.map(|node| node.full_name().into());
        Self::new(names.collect(), graph.edges)
    }
}

impl Serialize for Dependencies<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl TraceAnalysis {
    /// Returns the results. The dependencies of `operations` are at the top, those of the other
    /// levels below `graphs`.
    pub fn document(&self, self_loops: bool) -> TraceDocument<'_> {
        let operations = self.operations();
        let classes = self.profile().classes_without_hosts(operations);
        let listed = classes.iter().take(MAX_LISTED).map(|class| {
            json!({
                "traces": class.traces,
                "calls": class.example.calls.len(),
                "max_depth": class.example.max_depth(),
                "mean_ns": class.total_ns / class.traces.max(1),
                "example": class.example.id,
                "root": root(class.example, operations),
            })
        });
        TraceDocument {
            analysis: self,
            self_loops,
            figures: self.figures(classes.len()),
            classes: listed.collect(),
        }
    }

    /// Returns the counts of traces.
    fn figures(&self, classes: usize) -> Value {
        let profile = self.profile();
        let counts = profile.counts();
        json!({
            "valid": counts.valid,
            "repaired": counts.repaired,
            "invalid": counts.invalid,
            "incomplete": counts.incomplete.values().copied().fold(0, u64::saturating_add),
            "incomplete_reasons": counts.incomplete,
            "late": counts.late,
            "late_records": counts.late_records,
            "records": counts.records,
            "copies": counts.copies,
            "chunk_copies": counts.chunk_copies,
            "shared_chunks": counts.shared_chunks,
            "untraced": counts.untraced,
            "asynchronous": counts.asynchronous,
            "spans_without_parent": counts.spans_without_parent,
            "linked": counts.linked,
            "parent_missing": counts.parent_missing,
            "without_class": counts.without_class,
            "without_session": counts.without_session,
            "classes": classes,
            "classes_with_hosts": profile.classes.len(),
            "sessions": profile.sessions().len(),
            "first_unix_ns": profile.span().map(|span| span.0),
            "last_unix_ns": profile.span().map(|span| span.1),
        })
    }

    fn graph(&self, level: Level, self_loops: bool) -> Graph {
        Graph::of(
            self.profile().call_tree(),
            self.operations(),
            level,
            self_loops,
        )
    }

    /// Returns the calls of all valid traces as folded stacks: one line for each list of callers,
    /// with the last one's own time in nanoseconds. Viewers of flame graphs read them.
    pub fn folded(&self) -> String {
        let tree = self.profile().call_tree().without_hosts(self.operations());
        let mut stacks: Vec<String> = vec![String::new()];
        let mut folded = String::new();
        for node in tree.nodes().iter().skip(1) {
            let mut stack = stacks[node.parent].clone();
            if !stack.is_empty() {
                stack.push(';');
            }
            let name = short_name(self.operations().operation(node.called()));
            stack.push_str(&name.replace([';', '\n', '\r'], "_"));
            writeln!(folded, "{stack} {}", node.self_ns).ok();
            stacks.push(stack);
        }
        folded
    }

    /// Returns the operations with their response times; operations with the most calls come first.
    fn timed(&self) -> Vec<(Operation<'_>, &Timed)> {
        let times = self.profile().times.iter();
        let timed = times.map(|(kind, timed)| (self.operations().of_kind(kind), timed));
        let mut timed: Vec<_> = timed.collect();
        // Sorted by name, independent of the order of arrival.
        timed.sort_by_key(|&(operation, timed): &(Operation<'_>, &Timed)| {
            let name = (operation.signature, operation.component);
            (std::cmp::Reverse(timed.durations.calls()), name)
        });
        timed
    }

    /// Returns the dependencies of operations on all hosts together.
    fn operation_dependencies(&self, self_loops: bool) -> Dependencies<'_> {
        let operations = self.operations();
        let mut calls = BTreeMap::new();
        // Position 0 is the entry.
        let position = |id| operations.kind_of(id).position() + 1;
        for (from, to, count) in self.profile().call_tree().calls() {
            let (from, to) = (from.map_or(0, position), position(to));
            if from != to || self_loops {
                add_count(calls.entry((from, to)).or_default(), count);
            }
        }
        let signatures = operations.kinds().map(|it| it.signature);
        let names = [ENTRY].into_iter().chain(signatures).map(Cow::Borrowed);
        let edges = calls.into_iter();
        let edges = edges.map(|((from, to), calls)| GraphEdge { from, to, calls });
        Dependencies::new(names.collect(), edges.collect())
    }
}

impl ClosedTrace {
    /// Returns the trace as one JSON object, for lists of traces.
    pub fn document(&self, operations: &Operations) -> Value {
        let trace = &self.trace;
        let (verdict, reason) = match self.outcome {
            Outcome::Incomplete(reason) => ("incomplete", Some(reason.name())),
            Outcome::Invalid(reason) => ("invalid", Some(reason.name())),
            Outcome::Repaired => ("repaired", None),
            Outcome::Valid => ("valid", None),
        };
        json!({
            "trace": trace.id,
            "verdict": verdict,
            "reason": reason,
            "root": root(trace, operations),
            "calls": trace.calls.len(),
            "asynchronous": trace.asynchronous(),
            "max_depth": trace.max_depth(),
            "start_unix_ns": trace.start(),
            "duration_ns": trace.nanos(),
            "session": trace.session,
            "parent": trace.parent.map(|(id, _)| id),
        })
    }
}

/// Returns the page of an analysis: one file that needs no network.
pub fn report(analysis: &TraceAnalysis, title: &str) -> String {
    let (profile, operations) = (analysis.profile(), analysis.operations());
    let tree = profile.call_tree();
    let shared = shared_beginning(profile.times.iter().filter_map(|(kind, _)| {
        let operation = operations.of_kind(kind);
        (!operation.component.is_empty()).then_some(operation.component)
    }));
    let views = [
        ("Components", Level::Components),
        ("Operations", Level::Operations),
        ("Hosts", Level::Hosts),
        ("Components on hosts", Level::HostComponents),
        ("Operations on hosts", Level::HostOperations),
    ];
    let graphs = views.map(|(name, level)| picture(name, analysis.graph(level, false), shared));
    let call_tree = Graph::of_tree(&tree.without_hosts(operations), operations, false);
    let mut graphs = graphs.to_vec();
    graphs.push(picture("Call tree", call_tree, shared));
    let classes = profile.classes_without_hosts(operations);
    let examples = classes.iter().take(MAX_EXAMPLES).enumerate();
    let examples = examples.map(|(number, class)| {
        let why = format!(
            "class {} of {}: {} traces",
            number + 1,
            classes.len(),
            class.traces
        );
        waterfall(class.example, &why, operations, shared)
    });
    let slowest = profile.slowest().iter();
    let slowest = slowest.map(|trace| waterfall(trace, "one of the slowest", operations, shared));
    let timed = analysis.timed().into_iter().map(|it| {
        let mut figures = operation_figures(&it);
        if let Some(fields) = figures.as_object_mut() {
            fields.insert("buckets".to_owned(), json!(it.1.durations.buckets()));
            let component = without(it.0.component, shared);
            fields.insert("component".to_owned(), json!(component));
        }
        figures
    });
    let document = json!({
        "traces": analysis.figures(classes.len()),
        "title": title,
        "shared": shared,
        "timed": timed.collect::<Vec<_>>(),
        "pictures": graphs,
        "waterfalls": slowest.chain(examples).collect::<Vec<_>>(),
    });
    // Whatever the names contain, they cannot end the script.
    let data = document.to_string().replace('<', "\\u003c");
    let page = PAGE.replacen(STYLE_PLACE, PAGE_STYLE, 1);
    page.replacen(DATA, &data, 1)
}

/// Returns the whole parts with which all of these paths begin. Of each path at least its last part
/// is left.
fn shared_beginning<'a>(mut paths: impl Iterator<Item = &'a str>) -> &'a str {
    let Some(first) = paths.next() else { return "" };
    let same = paths.fold(first, |same, path| {
        let is_same = |(a, b): &(char, char)| a == b;
        let letters = same.chars().zip(path.chars()).take_while(is_same);
        let bytes = letters.map(|(letter, _)| letter.len_utf8()).sum();
        same.get(..bytes).unwrap_or("")
    });
    let end = same.rfind(['.', ':']).map_or(0, |at| at + 1);
    same.get(..end).unwrap_or("")
}

/// Returns the name without this beginning.
fn without<'a>(name: &'a str, beginning: &str) -> &'a str {
    name.strip_prefix(beginning).unwrap_or(name)
}

/// Returns the figures of one operation.
fn operation_figures((operation, timed): &(Operation<'_>, &Timed)) -> Value {
    let times = timed.durations.times(operation.signature);
    json!({
        "operation": operation.signature,
        "component": operation.component,
        "name": operation.name(),
        "count": times.calls,
        "failed": timed.failed,
        "mean_ns": times.mean_ns,
        "min_ns": times.min_ns,
        "p50_ns": times.p50_ns,
        "p95_ns": times.p95_ns,
        "p99_ns": times.p99_ns,
        "max_ns": times.max_ns,
    })
}

fn short_name(operation: Operation<'_>) -> String {
    match operation.component.is_empty() {
        true => operation.name(),
        false => format!("{}.{}", operation.component, operation.name()),
    }
}

fn root(trace: &Trace, operations: &Operations) -> Option<String> {
    let first = trace.calls.first()?;
    Some(short_name(operations.operation(first.operation)))
}

/// Returns a graph with the positions of its nodes. Names are without the beginning that they share.
fn picture(name: &str, mut graph: Graph, shared: &str) -> Value {
    if graph.nodes.len() > MAX_NODES {
        return json!({ "name": name, "too_large": graph.nodes.len() });
    }
    for node in &mut graph.nodes {
        for name in node.groups.iter_mut().chain([&mut node.label]) {
            *name = without(name, shared).to_owned();
        }
    }
    let layout = layout::place(&graph);
    let nodes = graph
        .nodes
        .iter()
        .zip(layout.nodes)
        .map(|(node, placement)| {
            let group = node.groups.join(" · ");
            json!([node.label, group, placement.x, placement.y, placement.width])
        });
    let edges = graph.edges.iter().zip(layout.curves).zip(layout.labels);
    let edges = edges
        .map(|((edge, curve), (x, y))| json!([edge.from, edge.to, edge.calls, curve.path(), x, y]));
    json!({
        "name": name,
        "width": layout.width,
        "height": layout.height,
        "node_height": Placement::HEIGHT,
        "nodes": nodes.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
    })
}

/// Returns the calls of a trace with their times after its start, in nanoseconds.
fn waterfall(trace: &Trace, why: &str, operations: &Operations, shared: &str) -> Value {
    let start = trace.start();
    let own = trace.callers();
    let calls = trace
        .calls
        .iter()
        .zip(own)
        .take(MAX_CALLS)
        .map(|(call, (_, own))| {
            let operation = operations.operation(call.operation);
            let name = short_name(operation);
            let name = without(&name, shared);
            let after = nanos_between(start, call.tin);
            json!([
                name,
                operation.host,
                call.ess,
                after,
                call.nanos(),
                own,
                call.failed,
                call.asynchronous
            ])
        });
    json!({
        "id": trace.id.to_string(),
        "why": why,
        "start_unix_ns": start,
        "duration_ns": trace.nanos(),
        "session": trace.session,
        "parent": trace.parent.map(|(id, _)| id.to_string()),
        "count": trace.calls.len(),
        "calls": calls.collect::<Vec<_>>(),
    })
}
