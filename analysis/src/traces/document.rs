//! An analysis as one JSON document, as folded stacks, and as a page for a browser.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::counts::add_count;
use super::graph::{ENTRY, Graph, Level};
use super::layout::{self, Placement};
use super::operations::{KindId, Operation, Operations};
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

impl TraceAnalysis {
    /// Returns the results. The dependencies of `operations` are at the top, those of the other
    /// levels below `graphs`.
    pub fn document(&self, self_loops: bool) -> Value {
        let operations = self.operations();
        let profile = self.profile();
        let counts = profile.counts();
        let graph = |level| {
            let graph = Graph::of(profile.call_tree(), operations, level, self_loops);
            dependencies(&graph)
        };
        let graphs = Level::ALL
            .into_iter()
            .filter(|(level, _)| *level != Level::Operations);
        let graphs: serde_json::Map<_, _> = graphs
            .map(|(level, name)| (name.replace('-', "_"), graph(level)))
            .collect();
        let classes = profile.classes_without_hosts(operations).into_iter();
        let classes = classes.take(MAX_LISTED).map(|class| {
            json!({
                "traces": class.traces,
                "calls": class.example.calls.len(),
                "max_depth": class.example.max_depth(),
                "mean_ns": class.total_ns / class.traces.max(1),
                "example": class.example.id,
                "root": root(&class.example, operations),
            })
        });
        let sessions = profile
            .sessions()
            .iter()
            .take(MAX_LISTED)
            .map(|(name, session)| {
                json!({
                    "session": name,
                    "traces": session.traces,
                    "first_unix_ns": session.span.0,
                    "last_unix_ns": session.span.1,
                })
            });
        json!({
            "traces": {
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
                "classes": profile.classes_without_hosts(operations).len(),
                "classes_with_hosts": profile.classes().len(),
                "sessions": profile.sessions().len(),
                "first_unix_ns": profile.span().map(|span| span.0),
                "last_unix_ns": profile.span().map(|span| span.1),
            },
            "operations": self.timed().map(|it| operation_figures(&it)).collect::<Vec<_>>(),
            "dependencies": self.operation_dependencies(self_loops),
            "graphs": graphs,
            "classes": classes.collect::<Vec<_>>(),
            "sessions": sessions.collect::<Vec<_>>(),
        })
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
    fn timed(&self) -> impl Iterator<Item = (&Operation, &Timed)> {
        let times = self.profile().times().iter();
        let timed = times.map(|(kind, timed)| (self.operations().of_kind(*kind), timed));
        let mut timed: Vec<(&Operation, &Timed)> = timed.collect();
        // Sorted by name, independent of the order of arrival.
        timed.sort_by_key(|&(operation, timed)| {
            let name = (&*operation.signature, &*operation.component);
            (std::cmp::Reverse(timed.durations.calls()), name)
        });
        timed.into_iter()
    }

    /// Returns the dependencies of operations by their signatures, as in the list of operations.
    fn operation_dependencies(&self, self_loops: bool) -> Vec<Value> {
        let operations = self.operations();
        let mut calls = std::collections::BTreeMap::new();
        for (from, to, count) in self.profile().call_tree().calls() {
            let kind = |id| operations.operation(id).kind;
            let (from, to) = (from.map(kind), Some(kind(to)));
            if from != to || self_loops {
                add_count(calls.entry((from, to)).or_default(), count);
            }
        }
        let name =
            |kind: Option<KindId>| kind.map_or(ENTRY, |kind| &*operations.of_kind(kind).signature);
        let mut calls: Vec<_> = calls.into_iter().collect();
        calls.sort_by_key(|((from, to), _)| (name(*from), name(*to)));
        let calls = calls.into_iter();
        calls
            .map(
                |((from, to), count)| json!({ "from": name(from), "to": name(to), "count": count }),
            )
            .collect()
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
    let shared = shared_beginning(profile.times().keys().filter_map(|kind| {
        let operation = operations.of_kind(*kind);
        (!operation.component.is_empty()).then_some(&*operation.component)
    }));
    let views = [
        ("Components", Level::Components),
        ("Operations", Level::Operations),
        ("Hosts", Level::Hosts),
        ("Components on hosts", Level::HostComponents),
        ("Operations on hosts", Level::HostOperations),
    ];
    let graphs =
        views.map(|(name, level)| picture(name, Graph::of(tree, operations, level, false), shared));
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
        waterfall(&class.example, &why, operations, shared)
    });
    let slowest = profile.slowest().iter();
    let slowest = slowest.map(|trace| waterfall(trace, "one of the slowest", operations, shared));
    let timed = analysis.timed().map(|it| {
        let mut figures = operation_figures(&it);
        if let Some(fields) = figures.as_object_mut() {
            fields.insert("buckets".to_owned(), json!(it.1.durations.buckets()));
            let component = without(&it.0.component, shared);
            fields.insert("component".to_owned(), json!(component));
        }
        figures
    });
    let mut document = analysis.document(false);
    if let Some(fields) = document.as_object_mut() {
        fields.insert("title".to_owned(), json!(title));
        fields.insert("shared".to_owned(), json!(shared));
        fields.insert("timed".to_owned(), timed.collect());
        fields.insert("pictures".to_owned(), json!(graphs));
        fields.insert("waterfalls".to_owned(), slowest.chain(examples).collect());
        // The page takes these values from the lists above, and cannot hold the ids as numbers.
        for unused in [
            "classes",
            "dependencies",
            "graphs",
            "operations",
            "sessions",
        ] {
            fields.remove(unused);
        }
    }
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
fn operation_figures((operation, timed): &(&Operation, &Timed)) -> Value {
    let times = timed.durations.times(&operation.signature);
    json!({
        "operation": &*operation.signature,
        "component": &*operation.component,
        "name": &*operation.name,
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

fn dependencies(graph: &Graph) -> Value {
    let name = |node: usize| graph.nodes[node].full_name();
    let mut edges: Vec<_> = graph.edges.iter().collect();
    edges.sort_by_cached_key(|edge| (name(edge.from), name(edge.to)));
    let edges = edges.into_iter();
    edges
        .map(|edge| json!({ "from": name(edge.from), "to": name(edge.to), "count": edge.calls }))
        .collect()
}

fn short_name(operation: &Operation) -> String {
    match operation.component.is_empty() {
        true => operation.name.as_ref().to_owned(),
        false => format!("{}.{}", operation.component, operation.name),
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
                &*operation.host,
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
