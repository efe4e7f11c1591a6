//! Traces: Kieker's results for the same logs, generated traces whose trees are known, and late,
//! evicted or remotely called ones.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use baler_analysis::Parcel;
use baler_analysis::traces::{
    CallTree, ClosedTrace, Graph, Level, Operations, Outcome, Reason, SequenceDiagram, Trace,
    TraceAnalysis, TraceClass, TraceSettings, report,
};
use baler_common::container::{ChunkHeader, ChunkSerializer as _, Compression, NativeSerializer};
use baler_common::record::{BatchBuilder, DynamicRecord, RecordBatch};
use baler_common::transport::{ChunkReader as _, Received};
use baler_connector_kieker::types::{OperationExecutionRecord, TraceMetadata};
use baler_connector_kieker::{KiekerLogConfig, KiekerLogReader, container};
use proptest::prelude::*;

use crate::support::identity;

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/kieker")
        .join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(data(path)).unwrap()
}

/// A small generator of numbers: xorshift64 (Marsaglia, 2003).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.roll(last + 1));
        }
    }
}

fn parcel(batch: &RecordBatch) -> Parcel {
    parcel_of(batch, 0)
}

/// A chunk with this number.
pub(crate) fn parcel_of(batch: &RecordBatch, sequence: u64) -> Parcel {
    let mut bytes = Vec::new();
    let header = ChunkHeader::new(identity(sequence));
    let mut serializer = NativeSerializer::new(Compression::None).unwrap();
    serializer.serialize(batch, &header, &mut bytes).unwrap();
    Parcel::new(container::decoder().decode(&bytes).unwrap())
}

/// The records of a log in chunks, in their order or, with a seed, in a random one.
pub(crate) fn log(folder: &str, seed: Option<u64>) -> Vec<Parcel> {
    let mut reader = KiekerLogReader::open(KiekerLogConfig::new(data(folder))).unwrap();
    let mut records = Vec::new();
    while let Received::Chunk(delivery) = reader.receive(Instant::now()).unwrap() {
        let decoded = container::decoder().decode(&delivery.bytes).unwrap();
        records.extend(decoded.batch.records().map(DynamicRecord::from));
    }
    if let Some(seed) = seed {
        Dice(seed | 1).shuffle(&mut records);
    }
    let chunks = (0..).zip(records.chunks(700)).map(|(sequence, records)| {
        let mut batch = BatchBuilder::new();
        records
            .iter()
            .for_each(|record| batch.push_dynamic(record).unwrap());
        parcel_of(&batch.take(), sequence)
    });
    chunks.collect()
}

pub(crate) fn analyse(
    parcels: &[Parcel],
    settings: TraceSettings,
) -> (TraceAnalysis, Vec<ClosedTrace>) {
    let mut analysis = TraceAnalysis::new(settings);
    let mut closed = Vec::new();
    for parcel in parcels {
        analysis.accept(parcel, |trace, _| closed.push(trace.clone()));
    }
    analysis.finish(|trace, _| closed.push(trace.clone()));
    (analysis, closed)
}

/// The results as a document, with calls within a node.
pub(crate) fn document(analysis: &TraceAnalysis) -> serde_json::Value {
    serde_json::to_value(analysis.document(true)).unwrap()
}

/// Edges by the names of their nodes.
type Edges = BTreeMap<(String, String), u64>;

/// The last part of a component's name, which Kieker may have shortened.
fn last_part(component: &str) -> &str {
    let named = component
        .rsplit_once(':')
        .map_or(component, |(_, name)| name);
    named.rsplit('.').next().unwrap()
}

/// The nodes of one of Kieker's graphs, by number: groups and label.
fn kieker_edges(dot: &str) -> Edges {
    let mut nodes: HashMap<&str, String> = HashMap::new();
    let mut groups: Vec<String> = Vec::new();
    let mut edges = Edges::new();
    let unquoted = |line: &str| line.split('"').nth(1).unwrap().to_owned();
    let short = |label: &str| {
        let label = label.rsplit_once("\\n").map_or(label, |(_, label)| label);
        let is_operation = label.ends_with(')');
        if is_operation {
            label.to_owned()
        } else {
            last_part(label).to_owned()
        }
    };
    for line in dot.lines().map(str::trim) {
        if line.starts_with("subgraph") {
            groups.push(String::new());
        } else if line.starts_with("label =") {
            *groups.last_mut().unwrap() = short(&unquoted(line));
        } else if line == "}" {
            groups.pop();
        } else if let Some((name, label)) = line.split_once("\" [label=") {
            let label = short(&unquoted(label));
            let name = name.trim_matches('"');
            nodes.insert(name, [groups.clone(), vec![label]].concat().join("|"));
        } else if let Some((from, to)) = line.split_once("->") {
            let (to, calls) = to.split_once("[label=").unwrap();
            let calls = calls.split(',').next().unwrap().parse().unwrap();
            edges.insert((nodes[from].clone(), nodes[to].clone()), calls);
        }
    }
    edges
}

fn edges(analysis: &TraceAnalysis, level: Level) -> Edges {
    let tree = analysis.profile().call_tree();
    let graph = Graph::of(tree, analysis.operations(), level, false);
    let name = |node: usize| {
        let node = &graph.nodes[node];
        let names = node.groups.iter().chain([&node.label]);
        let names = names.map(|name| match name.ends_with(')') {
            true => name.as_str(),
            false => last_part(name),
        });
        names.collect::<Vec<_>>().join("|")
    };
    let edges = graph.edges.iter();
    edges
        .map(|edge| ((name(edge.from), name(edge.to)), edge.calls))
        .collect()
}

/// A tree as text: the name of each node, its calls, and its children in order of their text.
fn canonical(
    node: usize,
    names: &[String],
    children: &HashMap<usize, Vec<(usize, u64)>>,
) -> String {
    let below = children.get(&node).into_iter().flatten();
    let mut below: Vec<_> = below
        .map(|(child, calls)| format!("{calls}x{}", canonical(*child, names, children)))
        .collect();
    below.sort();
    format!("{}[{}]", names[node], below.join(","))
}

fn kieker_tree(dot: &str) -> String {
    let mut names = Vec::new();
    let mut children: HashMap<usize, Vec<(usize, u64)>> = HashMap::new();
    for line in dot.lines() {
        if let Some((number, label)) = line.split_once("[label =\"") {
            assert_eq!(number.parse::<usize>().unwrap(), names.len());
            let label = label.split('"').next().unwrap();
            let parts: Vec<_> = label.split("\\n").collect();
            names.push(match parts.as_slice() {
                [host, component, name] => format!("{host}{}{name}", last_part(component)),
                [component, name] => format!("{}{name}", last_part(component)),
                _ => label.to_owned(),
            });
        } else if let Some((from, to)) = line.split_once("->") {
            let (to, rest) = to.split_once('[').unwrap();
            let calls = rest
                .split("label=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap();
            let child = (to.parse().unwrap(), calls.parse().unwrap());
            children
                .entry(from.parse().unwrap())
                .or_default()
                .push(child);
        }
    }
    canonical(0, &names, &children)
}

fn tree(tree: &CallTree, operations: &Operations, with_hosts: bool) -> String {
    let mut names = Vec::new();
    let mut children: HashMap<usize, Vec<(usize, u64)>> = HashMap::new();
    for (number, node) in tree.nodes().iter().enumerate() {
        let Some(operation) = node.operation.and_then(|id| operations.get(id)) else {
            names.push("'Entry'".to_owned());
            continue;
        };
        let host = if with_hosts {
            format!("{}::", operation.host)
        } else {
            String::new()
        };
        names.push(format!(
            "{host}{}.{}",
            last_part(operation.component),
            operation.name()
        ));
        children
            .entry(node.parent)
            .or_default()
            .push((number, node.calls));
    }
    canonical(0, &names, &children)
}

/// Traces, calls of each, and depth of each class.
fn kieker_classes(text: &str) -> Vec<(u64, usize, i32)> {
    let mut classes: Vec<_> = text
        .lines()
        .map(|line| {
            let figures: Vec<_> = line.split("; ").collect();
            let figure = |at: usize| figures[at].rsplit(' ').next().unwrap();
            let traces = figure(1).parse().unwrap();
            (
                traces,
                figure(2).parse().unwrap(),
                figure(4).parse().unwrap(),
            )
        })
        .collect();
    classes.sort_unstable();
    classes
}

fn same_as_kieker(analysis: &TraceAnalysis, expected: &str) {
    let operations = analysis.operations();
    for (level, file) in [
        (Level::Components, "assemblyComponent"),
        (Level::Operations, "assemblyOperation"),
        (Level::Hosts, "container"),
        (Level::HostComponents, "deploymentComponent"),
        (Level::HostOperations, "deploymentOperation"),
    ] {
        let dot = text(&format!("{expected}/{file}DependencyGraph.dot"));
        let kieker = kieker_edges(&dot);
        assert!(!kieker.is_empty());
        assert_eq!(edges(analysis, level), kieker, "{expected} {level:?}");
    }
    let whole = analysis.profile().call_tree();
    let kieker = kieker_tree(&text(&format!(
        "{expected}/aggregatedDeploymentCallTree.dot"
    )));
    assert_eq!(tree(whole, operations, true), kieker);
    let kieker = kieker_tree(&text(&format!("{expected}/aggregatedAssemblyCallTree.dot")));
    assert_eq!(
        tree(&whole.without_hosts(operations), operations, false),
        kieker
    );
}

fn shape<T: Borrow<Trace>>(class: &TraceClass<T>) -> (u64, usize, i32) {
    let example = class.example.borrow();
    (class.traces, example.calls.len(), example.max_depth())
}

fn same_classes(analysis: &TraceAnalysis, expected: &str) {
    let profile = analysis.profile();
    let mut with_hosts: Vec<_> = profile.classes().into_iter().map(shape).collect();
    with_hosts.sort_unstable();
    let kieker = kieker_classes(&text(&format!(
        "{expected}/traceDeploymentEquivClasses.txt"
    )));
    assert_eq!(with_hosts, kieker);
    let without_hosts = profile.classes_without_hosts(analysis.operations());
    let mut without_hosts: Vec<_> = without_hosts.iter().map(shape).collect();
    without_hosts.sort_unstable();
    let kieker = kieker_classes(&text(&format!("{expected}/traceAssemblyEquivClasses.txt")));
    assert_eq!(without_hosts, kieker);
}

/// The calls of each trace with their callers, as Kieker's list of messages has them:
/// `caller --> called` where each is `eoi,ess tin-tout host Component.operation`.
fn kieker_calls(file: &str) -> BTreeMap<i64, BTreeSet<String>> {
    let unpacked = Command::new("gzip")
        .arg("-dc")
        .arg(data(file))
        .output()
        .unwrap();
    assert!(unpacked.status.success());
    let mut traces: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    let mut id = 0;
    let end = |text: &str| {
        let mut words = text.split(' ');
        let (place, times, name) = (words.next()?, words.next()?, words.next()?);
        let place = place.split(['[', ']']).nth(1)?;
        let (host, name) = name.split_once("::")?;
        let (component, name) = name.rsplit_once('.')?;
        Some(format!(
            "{place} {times} {host} {}.{name}",
            last_part(component)
        ))
    };
    for line in String::from_utf8(unpacked.stdout).unwrap().lines() {
        if let Some(trace) = line.strip_prefix("Trace ") {
            id = trace.trim_end_matches(':').parse().unwrap();
        } else if let Some(call) = line.strip_prefix("<SYNC-CALL ") {
            let (_, ends) = call.split_once(' ').unwrap();
            let (from, to) = ends.split_once(" --> ").unwrap();
            let from = end(from).unwrap_or_else(|| "Entry".to_owned());
            let call = format!("{from} --> {}", end(to).unwrap());
            assert!(traces.entry(id).or_default().insert(call), "{line}");
        }
    }
    traces
}

fn calls(closed: &[ClosedTrace], operations: &Operations) -> BTreeMap<i64, BTreeSet<String>> {
    let valid = closed.iter().filter(|closed| closed.outcome.is_valid());
    let traces = valid.map(|ClosedTrace { trace, .. }| {
        let name = |position: usize| {
            let call = trace.calls[position];
            let operation = operations.get(call.operation).unwrap();
            let name = operation.name();
            let name = name.split('(').next().unwrap();
            format!(
                "{},{} {}-{} {} {}.{name}",
                call.eoi,
                call.ess,
                call.tin,
                call.tout,
                operation.host,
                last_part(operation.component)
            )
        };
        let callers = trace.callers().into_iter().enumerate();
        let calls = callers.map(|(position, (caller, _))| {
            let caller = caller.map_or_else(|| "Entry".to_owned(), name);
            format!("{caller} --> {}", name(position))
        });
        (trace.id, calls.collect())
    });
    traces.collect()
}

/// Whatever the order, the oracle's log gives the oracle's results.
fn the_2010_log(seed: Option<u64>) {
    let parcels = log("operation-executions-2010", seed);
    let (analysis, closed) = analyse(&parcels, TraceSettings::default());
    let counts = analysis.profile().counts();
    assert_eq!((counts.valid, counts.records), (1_635, 6_540));
    assert!(counts.invalid.is_empty() && counts.incomplete.is_empty());
    same_as_kieker(&analysis, "oracle/2010-all");
    same_classes(&analysis, "oracle/2010-all");
    let kieker = kieker_calls("oracle/2010-all/messageTraces.txt.gz");
    assert!(calls(&closed, analysis.operations()) == kieker);
}

fn the_500_event_traces(seed: Option<u64>) {
    let folder = "oracle/events-500/kieker-20261123-120000-1-UTC--KIEKER";
    let (analysis, closed) = analyse(&log(folder, seed), TraceSettings::default());
    let counts = analysis.profile().counts();
    assert_eq!((counts.valid, counts.repaired), (500, 0));
    assert!(counts.invalid.is_empty() && counts.incomplete.is_empty());
    same_as_kieker(&analysis, "oracle/events-500/expected");
    same_classes(&analysis, "oracle/events-500/expected");
    let kieker = kieker_calls("oracle/events-500/expected/messageTraces.txt.gz");
    assert!(calls(&closed, analysis.operations()) == kieker);
}

fn the_1000_executions_with_faults(seed: Option<u64>) {
    let folder = "oracle/oer-1000-bad/kieker-20261123-120000-1-UTC--KIEKER";
    let (analysis, closed) = analyse(&log(folder, seed), TraceSettings::default());
    let counts = analysis.profile().counts();
    assert_eq!((counts.valid, counts.copies > 0), (903, true));
    let reasons = [
        (Reason::DepthJump, 7),
        (Reason::FirstNotRoot, 15),
        (Reason::OrderGap, 46),
    ];
    assert_eq!(counts.invalid, BTreeMap::from(reasons));
    same_as_kieker(&analysis, "oracle/oer-1000-bad/expected");
    same_classes(&analysis, "oracle/oer-1000-bad/expected");
    let kieker = kieker_calls("oracle/oer-1000-bad/expected/messageTraces.txt.gz");
    assert!(calls(&closed, analysis.operations()) == kieker);
    let invalid = closed.iter().filter(|closed| !closed.outcome.is_valid());
    let invalid: BTreeSet<i64> = invalid.map(|closed| closed.trace.id).collect();
    let kieker = text("oracle/oer-1000-bad/expected/invalidTraceArtifacts.txt");
    let kieker = kieker
        .lines()
        .filter_map(|line| line.strip_prefix("TraceId "));
    let kieker = kieker.map(|line| line.split(' ').next().unwrap().parse().unwrap());
    assert_eq!(invalid, kieker.collect());
}

#[test]
fn executions_become_the_traces_and_graphs_of_kieker() {
    the_2010_log(None);
}

#[test]
fn events_become_the_traces_and_graphs_of_kieker() {
    the_500_event_traces(None);
}

#[test]
fn executions_with_faults_are_valid_and_invalid_as_in_kieker() {
    the_1000_executions_with_faults(None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]
    #[test]
    fn the_order_of_arrival_does_not_count(seed: u64) {
        the_2010_log(Some(seed));
        the_500_event_traces(Some(seed));
        the_1000_executions_with_faults(Some(seed));
    }
}

#[test]
fn the_logs_of_2014_give_the_same_graphs_whole_and_repaired() {
    for seed in [None, Some(1), Some(2)] {
        let (analysis, _) = analyse(&log("trace-events-2014", seed), TraceSettings::default());
        let counts = analysis.profile().counts();
        assert_eq!((counts.valid, counts.repaired, counts.records), (2, 0, 12));
        same_as_kieker(&analysis, "trace-events-2014-expected");

        let parcels = log("trace-events-2014-incomplete", seed);
        let mut settings = TraceSettings::default();
        settings.repair = true;
        let (analysis, _) = analyse(&parcels, settings);
        let counts = analysis.profile().counts();
        assert_eq!((counts.valid, counts.repaired, counts.records), (2, 2, 9));
        same_as_kieker(&analysis, "trace-events-2014-incomplete-expected");

        let (analysis, closed) = analyse(&parcels, TraceSettings::default());
        assert_eq!(
            analysis.profile().counts().incomplete,
            BTreeMap::from([(Reason::AfterMissing, 2)])
        );
        let missing = Outcome::Incomplete(Reason::AfterMissing);
        assert!(closed.iter().all(|closed| closed.outcome == missing));
    }
}

fn whole(number: usize) -> i32 {
    i32::try_from(number).unwrap()
}

/// A trace whose tree is known.
pub(crate) struct Known {
    pub(crate) id: i64,
    /// Its operations and depths in order of entry.
    calls: Vec<(usize, i32)>,
    /// A trace that called it, and the call in it.
    parent: Option<(usize, usize)>,
}

/// Traces of 1 to 40 levels; one in eight was called from another one.
pub(crate) fn known_traces(count: usize, dice: &mut Dice) -> Vec<Known> {
    let mut traces: Vec<Known> = Vec::new();
    for number in 0..count {
        // One in twenty goes straight down.
        let is_straight = dice.roll(20) == 0;
        let deepest = 1 + whole(dice.roll(40));
        let size = if is_straight { 60 } else { 1 + dice.roll(12) };
        let mut calls = vec![(dice.roll(30), 0)];
        while calls.len() < size && deepest > 1 {
            let depth = calls.last().unwrap().1;
            let goes_down = is_straight && calls.len() < 45 || dice.roll(4) > 0;
            let next = if goes_down {
                depth + 1
            } else {
                1 + whole(dice.roll(usize::try_from(depth).unwrap() + 1))
            };
            calls.push((dice.roll(30), next.min(deepest - 1)));
        }
        let parent = (number > 0 && dice.roll(8) == 0).then(|| {
            let parent = dice.roll(number);
            (parent, dice.roll(traces[parent].calls.len()))
        });
        traces.push(Known {
            id: 1_000 + i64::from(whole(number)),
            calls,
            parent,
        });
    }
    traces
}

fn signature(operation: usize) -> String {
    format!("void shop.Part{}.run{operation}(int)", operation % 5)
}

/// An execution and, for a trace that was called from another one, its metadata record.
pub(crate) enum TraceRecord {
    Call(OperationExecutionRecord),
    Parent(TraceMetadata),
}

/// The records of traces. A call takes 10 ns for each call in it, and 10 more.
pub(crate) fn records_of(traces: &[Known]) -> Vec<TraceRecord> {
    let mut records = Vec::new();
    for (number, trace) in traces.iter().enumerate() {
        let host = format!("producer{}", number % 8);
        let start = 1_000_000 + i64::from(whole(number)) * 1_000;
        for (eoi, (operation, ess)) in trace.calls.iter().enumerate() {
            let below = trace.calls[eoi + 1..]
                .iter()
                .take_while(|(_, depth)| depth > ess)
                .count();
            let tin = start + i64::from(whole(eoi)) * 5;
            records.push(TraceRecord::Call(OperationExecutionRecord {
                operation_signature: signature(*operation),
                session_id: "<no-session-id>".into(),
                trace_id: trace.id,
                tin,
                tout: tin + 10 * (i64::from(whole(below)) + 1),
                hostname: host.as_str().into(),
                eoi: whole(eoi),
                ess: *ess,
            }));
        }
        if let Some((parent, call)) = trace.parent {
            records.push(TraceRecord::Parent(TraceMetadata {
                trace_id: trace.id,
                thread_id: 1,
                session_id: "<no-session-id>".into(),
                hostname: host.as_str().into(),
                parent_trace_id: traces[parent].id,
                parent_order_id: whole(call),
            }));
        }
    }
    records
}

pub(crate) fn parcels(records: &[TraceRecord]) -> Vec<Parcel> {
    let chunks = (0..).zip(records.chunks(2_000)).map(|(sequence, records)| {
        let mut batch = BatchBuilder::new();
        for record in records {
            match record {
                TraceRecord::Call(record) => batch.push(record).unwrap(),
                TraceRecord::Parent(record) => batch.push(record).unwrap(),
            }
        }
        parcel_of(&batch.take(), sequence)
    });
    chunks.collect()
}

#[test]
fn every_tree_of_20_000_generated_traces_is_exact() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let traces = known_traces(20_000, &mut dice);
    let mut records = records_of(&traces);
    dice.shuffle(&mut records);
    let (analysis, closed) = analyse(&parcels(&records), TraceSettings::default());
    let counts = analysis.profile().counts();
    let called = traces.iter().filter(|trace| trace.parent.is_some()).count() as u64;
    assert_eq!(
        (counts.valid, counts.linked, counts.parent_missing),
        (20_000, called, 0)
    );
    assert_eq!(closed.len(), traces.len());
    let depths: BTreeSet<_> = closed
        .iter()
        .map(|closed| closed.trace.max_depth() + 1)
        .collect();
    assert!(depths.contains(&1) && depths.contains(&40), "{depths:?}");
    let operations = analysis.operations();
    for ClosedTrace { trace, outcome } in &closed {
        let known = &traces[usize::try_from(trace.id - 1_000).unwrap()];
        let calls = trace.calls.iter().map(|call| {
            (
                operations.get(call.operation).unwrap().signature.to_owned(),
                call.ess,
            )
        });
        let expected = known
            .calls
            .iter()
            .map(|(operation, depth)| (signature(*operation), *depth));
        assert!(calls.eq(expected), "{trace:?}");
        assert_eq!(*outcome, Outcome::Valid);
    }

    // The same sums, made without the library.
    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    for trace in &traces {
        for (position, (operation, depth)) in trace.calls.iter().enumerate() {
            let before = trace.calls[..position].iter().rev();
            let caller = match before.clone().find(|(_, other)| other < depth) {
                Some((caller, _)) => signature(*caller),
                None => match trace.parent {
                    Some((parent, call)) => signature(traces[parent].calls[call].0),
                    None => "'Entry'".to_owned(),
                },
            };
            *expected.entry((caller, signature(*operation))).or_default() += 1;
        }
    }
    let document = document(&analysis);
    let name = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let dependencies = document["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| {
            (
                (name(&edge["from"]), name(&edge["to"])),
                edge["count"].as_u64().unwrap(),
            )
        });
    assert_eq!(dependencies.collect::<BTreeMap<_, _>>(), expected);
    let timed = document["operations"].as_array().unwrap();
    let timed: u64 = timed
        .iter()
        .map(|operation| operation["count"].as_u64().unwrap())
        .sum();
    assert_eq!(
        usize::try_from(timed).unwrap(),
        traces.iter().map(|trace| trace.calls.len()).sum::<usize>()
    );
}

fn trace_of(record: &TraceRecord) -> Option<i64> {
    match record {
        TraceRecord::Call(call) => Some(call.trace_id),
        _ => None,
    }
}

/// Takes the first record of each of the first forty traces. Returns the first one.
pub(crate) fn take_first_of_some(records: &mut Vec<TraceRecord>) -> TraceRecord {
    let mut seen = HashSet::new();
    let taken: Vec<_> = records
        .extract_if(.., |record| {
            seen.len() < 40 && seen.insert(trace_of(record))
        })
        .collect();
    taken.into_iter().next().unwrap()
}

#[test]
fn traces_beyond_the_bound_are_closed_and_counted_and_a_late_record_too() {
    let mut dice = Dice(77);
    let traces = known_traces(5_000, &mut dice);
    let mut records = records_of(&traces);
    records.retain(|record| matches!(record, TraceRecord::Call(_)));
    let missing = take_first_of_some(&mut records);
    let total = records.len();
    let ids: HashSet<_> = records.iter().filter_map(trace_of).collect();
    let parcels_in_order = parcels(&records);
    let mut settings = TraceSettings::default();
    settings.max_waiting = 200;
    let mut analysis = TraceAnalysis::new(settings);
    for parcel in &parcels_in_order {
        analysis.accept(parcel, |_, _| {});
    }
    // Its trace was evicted without it.
    analysis.accept(&parcels(&[missing])[0], |_, _| {});
    analysis.finish(|_, _| {});
    let counts = analysis.profile().counts();
    assert_eq!((counts.late, counts.late_records), (1, 1));
    assert_eq!(counts.records, total as u64 + 1);
    let incomplete: u64 = counts.incomplete.values().sum();
    let invalid: u64 = counts.invalid.values().sum();
    let all = u64::try_from(ids.len()).unwrap();
    assert_eq!(counts.valid + incomplete + invalid, all, "{counts:?}");
    assert_eq!(
        counts.incomplete.keys().collect::<Vec<_>>(),
        [&Reason::Evicted]
    );
    // Complete traces make room. So only traces without their first record are not valid.
    assert!(incomplete > 10 && incomplete + invalid <= 40, "{counts:?}");
}

/// An execution of one trace.
fn execution(trace_id: i64, [eoi, ess]: [i32; 2], [tin, tout]: [i64; 2]) -> TraceRecord {
    TraceRecord::Call(OperationExecutionRecord {
        operation_signature: signature(0),
        session_id: "s".into(),
        trace_id,
        tin,
        tout,
        hostname: "h".into(),
        eoi,
        ess,
    })
}

#[test]
fn complete_traces_make_room_first_and_the_last_ones_keep_their_reasons() {
    let mut settings = TraceSettings::default();
    settings.max_waiting = 60;
    // A trace whose root comes last, after a hundred complete traces.
    let mut records = vec![execution(1, [1, 1], [2, 3])];
    records.extend((2..102).map(|id| execution(id, [0, 0], [4, 5])));
    records.push(execution(1, [0, 0], [1, 6]));
    // Traces that no record could make valid, and some that lack one when nothing more comes.
    records.extend(
        (102..122).flat_map(|id| [execution(id, [0, 0], [7, 8]), execution(id, [0, 0], [7, 9])]),
    );
    records.extend((122..132).map(|id| execution(id, [2, 0], [7, 8])));
    // One record a chunk.
    let parcels: Vec<_> = records
        .iter()
        .flat_map(|it| parcels(std::slice::from_ref(it)))
        .collect();
    let (analysis, _) = analyse(&parcels, settings);
    let counts = analysis.profile().counts();
    assert_eq!((counts.valid, counts.late), (101, 0), "{counts:?}");
    assert_eq!(counts.incomplete, BTreeMap::new(), "{counts:?}");
    let invalid = BTreeMap::from([
        (Reason::FirstNotRoot, 0),
        (Reason::OrderGap, 10),
        (Reason::OrderRepeated, 20),
    ]);
    let invalid: BTreeMap<_, u64> = invalid
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(counts.invalid, invalid);
}

#[test]
fn an_execution_that_ends_before_it_begins_is_a_call_of_no_time() {
    let records = [
        execution(1, [0, 0], [100, 200]),
        execution(1, [1, 1], [150, 120]),
    ];
    let (analysis, traces) = analyse(&parcels(&records), TraceSettings::default());
    assert_eq!(analysis.profile().counts().valid, 1);
    let nanos: Vec<_> = traces[0]
        .trace
        .calls
        .iter()
        .map(|call| call.nanos())
        .collect();
    assert_eq!(nanos, [100, 0]);
    let own: Vec<_> = traces[0]
        .trace
        .callers()
        .iter()
        .map(|(_, own)| *own)
        .collect();
    assert_eq!(own, [100, 0]);
}

#[test]
fn a_trace_that_lasts_too_long_is_invalid_in_any_order() {
    let mut settings = TraceSettings::default();
    settings.max_duration = std::time::Duration::from_nanos(100);
    let call = |id, eoi, tin, tout| execution(id, [eoi, eoi], [tin, tout]);
    let mut records = vec![
        call(1, 0, 0, 150),
        call(1, 1, 10, 20),
        call(2, 0, 0, 90),
        call(2, 1, 5, 6),
    ];
    for _ in 0..2 {
        let (analysis, _) = analyse(&parcels(&records), settings.clone());
        let counts = analysis.profile().counts();
        assert_eq!(counts.invalid, BTreeMap::from([(Reason::MaxDuration, 1)]));
        assert_eq!(counts.valid, 1);
        assert_eq!(analysis.profile().sessions()["s"].traces, 1);
        records.reverse();
    }
}

#[test]
fn every_form_of_a_result_is_whole_and_safe() {
    let folder = "oracle/oer-1000-bad/kieker-20261123-120000-1-UTC--KIEKER";
    let mut parcels = log(folder, None);
    let hostile = OperationExecutionRecord {
        operation_signature: "void a.\"</script><b>&.run(\u{1b})".into(),
        session_id: "</script>".into(),
        trace_id: 5,
        tin: 1,
        tout: 2,
        hostname: "h\"\\".into(),
        eoi: 0,
        ess: 0,
    };
    let mut batch = BatchBuilder::new();
    batch.push(&hostile).unwrap();
    parcels.push(parcel(&batch.take()));
    let (analysis, closed) = analyse(&parcels, TraceSettings::default());
    let (profile, operations) = (analysis.profile(), analysis.operations());
    let page = report(&analysis, "</title><script>");
    assert_eq!(
        page.matches("</script>").count(),
        2,
        "those of the page itself"
    );
    assert!(
        !page.contains("http://") || page.matches("http://").count() == 1,
        "a name of SVG"
    );
    assert!(!page.contains("https://") && !page.contains("src="));
    for (level, _) in Level::ALL {
        let graph = Graph::of(profile.call_tree(), operations, level, true);
        assert_eq!(graph.svg().matches("<g>").count(), graph.nodes.len());
        let xml = graph.graphml();
        assert_eq!(xml.matches("<edge ").count(), graph.edges.len());
        assert!(!xml.contains("</script>") && !graph.svg().contains("</script>"));
        assert_eq!(graph.dot().matches(" -> ").count(), graph.edges.len());
    }
    let own: u64 = profile
        .call_tree()
        .nodes()
        .iter()
        .map(|node| node.self_ns)
        .sum();
    let folded = analysis.folded();
    let times = folded
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(times.sum::<u64>(), own);
    let valid = closed
        .iter()
        .find(|closed| closed.outcome.is_valid() && closed.trace.calls.len() > 5);
    let diagram = SequenceDiagram::of(&valid.unwrap().trace, operations);
    let uml = diagram.plantuml();
    assert_eq!(
        uml.matches(" -> ").count(),
        valid.unwrap().trace.calls.len()
    );
    assert_eq!(uml.matches(" -> ").count(), uml.matches(" --> ").count());
    assert_eq!(
        diagram.svg().matches("marker-end").count(),
        2 * uml.matches(" -> ").count()
    );
}
