//! Spans of OpenTelemetry: they become the calls of the executions of which they were made, in any
//! order, and executions again.

use std::collections::{BTreeMap, BTreeSet};

use baler_analysis::Parcel;
use baler_analysis::traces::{
    ClosedTrace, Operations, Outcome, Reason, SequenceDiagram, TraceAnalysis, TraceSettings, report,
};
use baler_common::record::{AnyValue, BatchBuilder, Record};
use baler_connector_kieker::types::OperationExecutionRecord;
use proptest::prelude::*;

use crate::saved_traces::{found, loaded, merged, saved};
use crate::traces::{Dice, analyse, document, log, parcel_of};

type Attributes = BTreeMap<String, AnyValue<'static>>;

/// The fields of `otel.Span` that matter, and some that do not.
#[derive(Debug, Clone, Record)]
#[record(name = "otel.Span")]
struct Span {
    resource: Resource,
    scope: Scope,
    trace_id: TraceId,
    span_id: u64,
    trace_state: String,
    parent_span_id: u64,
    name: String,
    kind: i32,
    start_time_unix_nano: u64,
    #[record(timestamp)]
    end_time_unix_nano: u64,
    attributes: Attributes,
    status: Option<Status>,
}

#[derive(Debug, Clone, Record)]
#[record(name = "otel.TraceId")]
struct TraceId {
    high: u64,
    low: u64,
}

#[derive(Debug, Clone, Record)]
#[record(name = "otel.Resource")]
struct Resource {
    attributes: Attributes,
    schema_url: String,
}

#[derive(Debug, Clone, Record)]
#[record(name = "otel.Scope")]
struct Scope {
    name: String,
    version: String,
}

#[derive(Debug, Clone, Record)]
#[record(name = "otel.Status")]
struct Status {
    message: String,
    code: i32,
}

fn attributes(texts: &[(&str, &str)]) -> Attributes {
    let texts = texts.iter();
    texts
        .map(|(name, value)| ((*name).into(), AnyValue::String((*value).to_owned().into())))
        .collect()
}

/// A span of the operation `lib.work`.
fn span(trace: u64, [id, parent]: [u64; 2], [start, end]: [u64; 2]) -> Span {
    Span {
        resource: Resource {
            attributes: attributes(&[("service.name", "shop"), ("host.name", "node")]),
            schema_url: String::new(),
        },
        scope: Scope {
            name: "lib".into(),
            version: "1".into(),
        },
        trace_id: TraceId {
            high: 7,
            low: trace,
        },
        span_id: id,
        trace_state: String::new(),
        parent_span_id: parent,
        name: "work".into(),
        kind: 1,
        start_time_unix_nano: start,
        end_time_unix_nano: end,
        attributes: attributes(&[]),
        status: None,
    }
}

/// The executions of a trace whose calls have these depths, one after the other.
fn executions(trace_id: i64, depths: &[i32]) -> Vec<OperationExecutionRecord> {
    let mut time = trace_id * 1_000;
    let mut calls: Vec<OperationExecutionRecord> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for ess in depths.iter().copied().chain([0]) {
        while open.len() > usize::try_from(ess).unwrap() {
            time += 1;
            calls[open.pop().unwrap()].tout = time;
        }
        time += 1;
        open.push(calls.len());
        calls.push(OperationExecutionRecord {
            operation_signature: format!("public void shop.Part{}.run(int)", calls.len() % 3),
            session_id: format!("session{}", trace_id % 2),
            trace_id,
            tin: time,
            tout: 0,
            hostname: format!("host{}", calls.len() % 2),
            eoi: i32::try_from(calls.len()).unwrap(),
            ess,
        });
    }
    // The last one only ended the others.
    calls.pop();
    calls
}

/// The spans of these executions of one trace.
fn spans(calls: &[OperationExecutionRecord]) -> Vec<Span> {
    let id = |eoi: i32| u64::from(eoi.unsigned_abs() + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let spans = calls.iter().enumerate().map(|(position, call)| {
        let before = calls[..position].iter().rev();
        let caller = before.clone().find(|caller| caller.ess < call.ess);
        let of = |number: i64| u64::try_from(number).unwrap();
        let ids = [id(call.eoi), caller.map_or(0, |caller| id(caller.eoi))];
        let mut span = span(of(call.trace_id), ids, [of(call.tin), of(call.tout)]);
        span.attributes = attributes(&[
            ("kieker.signature", &call.operation_signature),
            ("code.function.name", "not.This"),
            ("session.id", &call.session_id),
        ]);
        let host = attributes(&[("service.name", &call.hostname)]);
        span.resource.attributes = host;
        span
    });
    spans.collect()
}

fn parcels<R: Record>(records: &[R]) -> Vec<Parcel> {
    let chunks = (0..).zip(records.chunks(7)).map(|(sequence, records)| {
        let mut batch = BatchBuilder::new();
        records.iter().for_each(|it| batch.push(it).unwrap());
        parcel_of(&batch.take(), sequence)
    });
    chunks.collect()
}

fn analysed<R: Record>(records: &[R]) -> (TraceAnalysis, Vec<ClosedTrace>) {
    analyse(&parcels(records), TraceSettings::default())
}

/// The calls of all traces, with the names of their operations.
fn calls(closed: &[ClosedTrace], operations: &Operations) -> BTreeSet<String> {
    let calls = closed.iter().flat_map(|closed| {
        closed.trace.calls.iter().map(|call| {
            let operation = operations.get(call.operation).unwrap();
            let trace = (closed.trace.id, &closed.trace.session, closed.outcome);
            let times = (call.eoi, call.ess, call.tin, call.tout, call.asynchronous);
            format!(
                "{trace:?} {times:?} {} {}",
                operation.host, operation.signature
            )
        })
    });
    calls.collect()
}

proptest! {
    #[test]
    fn executions_and_their_spans_become_the_same_calls(
        traces in prop::collection::vec(prop::collection::vec(0_i32..4, 0..20), 1..6),
        seed: u64,
    ) {
        let traces = (1..).zip(&traces).map(|(id, steps)| {
            let mut depths = vec![0];
            for up in steps {
                depths.push((depths[depths.len() - 1] + 1 - up).max(1));
            }
            executions(id, &depths)
        });
        let traces: Vec<_> = traces.collect();
        let mut all: Vec<_> = traces.iter().flat_map(|calls| spans(calls)).collect();
        Dice(seed | 1).shuffle(&mut all);
        let (kieker, kieker_closed) = analysed(&traces.concat());
        let (otel, otel_closed) = analysed(&all);
        prop_assert_eq!(otel.profile().counts().asynchronous, 0);
        prop_assert_eq!(
            calls(&otel_closed, otel.operations()),
            calls(&kieker_closed, kieker.operations())
        );
        prop_assert_eq!(document(&otel), document(&kieker));
    }

    #[test]
    fn any_spans_give_one_result_in_any_order_also_in_parts(
        numbers in prop::collection::vec((1_u64..9, 0_u64..9, 0_u64..20, 0_u64..20), 1..24),
        seed: u64,
    ) {
        let spans = numbers.iter().zip(0..).map(|((id, parent, start, end), number)| {
            span(number % 3, [*id, *parent], [*start, *end])
        });
        let mut spans: Vec<_> = spans.collect();
        let settings = TraceSettings::default();
        let expected = analysed(&spans);
        let before = document(&expected.0);
        Dice(seed | 1).shuffle(&mut spans);
        let (analysis, closed) = analysed(&spans);
        prop_assert_eq!(&document(&analysis), &before);
        prop_assert_eq!(
            calls(&closed, analysis.operations()),
            calls(&expected.1, expected.0.operations())
        );
        let parts = spans.chunks(10).map(|part| saved(&parcels(part), &settings));
        let mut document = found(merged(&parts.collect::<Vec<_>>(), &settings)).0;
        // The chunks of the parts have the same numbers here.
        document["traces"]["shared_chunks"] = 0.into();
        prop_assert_eq!(document, before);
    }
}

/// A root with two calls that overlap, the second of which fails and ends after the root.
fn with_asynchronous_calls() -> Vec<Span> {
    let mut spans = vec![
        span(5, [1, 0], [100, 200]),
        span(5, [2, 1], [110, 150]),
        span(5, [3, 1], [120, 250]),
        span(5, [4, 3], [130, 140]),
    ];
    spans[2].status = Some(Status {
        message: "no".into(),
        code: 2,
    });
    spans
}

#[test]
fn asynchronous_and_failed_calls_are_counted_and_shown() {
    let (analysis, closed) = analysed(&with_asynchronous_calls());
    let trace = &closed[0].trace;
    let marks = trace
        .calls
        .iter()
        .map(|call| (call.asynchronous, call.failed));
    let expected = [(false, false), (true, false), (true, true), (false, false)];
    assert!(marks.eq(expected));
    let own: Vec<_> = trace.callers().iter().map(|(_, own)| *own).collect();
    assert_eq!(own, [0, 40, 120, 10]);
    let document = document(&analysis);
    assert_eq!(document["traces"]["asynchronous"], 2);
    assert_eq!(document["operations"][0]["failed"], 1);
    assert_eq!(document["operations"][0]["operation"], "lib.work()");
    let line = closed[0].document(analysis.operations());
    assert_eq!(
        (&line["asynchronous"], &line["trace"]),
        (&2.into(), &5.into())
    );
    let diagram = SequenceDiagram::of(trace, analysis.operations());
    for text in [diagram.plantuml(), diagram.svg()] {
        assert_eq!(text.matches("async work()").count(), 2, "{text}");
    }
    let page = report(&analysis, "title");
    assert!(page.contains(",20,130,120,true,true]"), "the third call");
}

#[test]
fn copies_mixed_kinds_and_spans_that_cannot_be_read_are_counted() {
    let spans = with_asynchronous_calls();
    let (analysis, _) = analysed(&[&spans[..], &spans].concat());
    let counts = analysis.profile().counts();
    assert_eq!((counts.valid, counts.copies, counts.records), (1, 4, 8));

    // An orphan, a cycle, an id that comes twice, a time that does not fit.
    let records = [
        span(1, [1, 9], [0, 1]),
        span(2, [1, 1], [0, 1]),
        span(3, [1, 0], [0, 1]),
        span(3, [1, 0], [0, 2]),
        span(4, [1, 0], [0, u64::MAX]),
    ];
    let (analysis, _) = analysed(&records);
    let counts = analysis.profile().counts();
    assert_eq!((counts.valid, counts.spans_without_parent), (1, 1));
    assert_eq!((counts.untraced, counts.records), (1, 4));
    let invalid = [(Reason::OrderRepeated, 1), (Reason::ParentCycle, 1)];
    assert_eq!(counts.invalid, BTreeMap::from(invalid));

    let mixed = [parcels(&spans), parcels(&executions(5, &[0]))].concat();
    let (_, closed) = analyse(&mixed, TraceSettings::default());
    assert_eq!(closed[0].outcome, Outcome::Invalid(Reason::MixedKinds));
}

#[test]
fn whole_traces_of_spans_make_room_first() {
    let mut settings = TraceSettings::default();
    settings.max_waiting = 60;
    // A trace whose root comes last, after a hundred whole traces.
    let mut spans = vec![span(1, [2, 1], [2, 3])];
    spans.extend((2..102).map(|trace| span(trace, [1, 0], [4, 5])));
    spans.push(span(1, [1, 0], [1, 6]));
    let parcels: Vec<_> = spans
        .iter()
        .flat_map(|it| parcels(std::slice::from_ref(it)))
        .collect();
    let (analysis, closed) = analyse(&parcels, settings);
    let counts = analysis.profile().counts();
    assert_eq!((counts.valid, counts.late_records), (101, 0), "{counts:?}");
    assert_eq!(counts.spans_without_parent, 0);
    let late = closed.iter().find(|closed| closed.trace.id == 1);
    assert_eq!(late.unwrap().trace.calls.len(), 2);
}

#[test]
fn results_of_before_there_were_spans_are_read() {
    let settings = TraceSettings::default();
    let parcels = log("operation-executions-2010", Some(5));
    let text = String::from_utf8(saved(&parcels, &settings)).unwrap();
    assert!(!text.contains("\"spans\""));
    let counts = ["\"spans_without_parent\":0,", "\"asynchronous\":0,"];
    let old = counts.iter().fold(text.clone(), |text, count| {
        assert!(text.contains(count), "{count}");
        text.replace(count, "")
    });
    assert!(old.contains(",false]"), "a call ends with `failed`");
    loaded(old.as_bytes());
    let [old, new] = [old, text].map(|text| found(merged(&[text.into_bytes()], &settings)));
    assert_eq!(old, new);
}

/// The executions of all valid traces.
fn executions_of(closed: &[ClosedTrace], operations: &Operations) -> Vec<OperationExecutionRecord> {
    let closed = closed.iter();
    closed.flat_map(|it| it.executions(operations)).collect()
}

#[test]
fn executions_of_spans_and_of_events_give_the_same_traces() {
    let orphan = span(6, [1, 9], [0, 1]);
    let spans = [with_asynchronous_calls(), vec![orphan]].concat();
    let (from_spans, closed) = analysed(&spans);
    let records = executions_of(&closed, from_spans.operations());
    let signatures: Vec<_> = records.iter().map(|it| &*it.operation_signature).collect();
    let marked = "async lib.work()";
    let plain = "lib.work()";
    assert_eq!(signatures, [plain, plain, marked, marked, plain]);
    let (from_executions, again) = analysed(&records);
    assert_eq!(
        calls(&again, from_executions.operations()),
        calls(&closed, from_spans.operations())
    );
    assert_eq!(from_executions.profile().counts().asynchronous, 2);

    // The class of an object is another one than the one of the signature, or is missing there.
    let events = log(
        "oracle/events-500/kieker-20261123-120000-1-UTC--KIEKER",
        None,
    );
    let (from_events, closed) = analyse(&events, TraceSettings::default());
    let records = executions_of(&closed, from_events.operations());
    let (from_executions, _) = analysed(&records);
    let [made, given] = [&from_executions, &from_events].map(document);
    assert_eq!(made["traces"]["valid"], 500);
    for part in ["graphs", "classes", "sessions"] {
        assert_eq!(made[part], given[part], "{part}");
    }
    // Traces that are not valid have none.
    let cycle = [span(2, [1, 1], [0, 1])];
    let (analysis, closed) = analysed(&cycle);
    assert!(executions_of(&closed, analysis.operations()).is_empty());
}
