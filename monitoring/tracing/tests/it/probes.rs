//! Spans and probes in one trace.

use baler_monitoring::{TraceContext, enter, probe};
use tracing::{Instrument as _, info_span, instrument};

use super::support::{Entry, Recording, Records};

#[probe]
fn probed(run: impl FnOnce()) {
    run();
}

#[probe]
async fn probed_async(number: u64) {
    tokio::task::yield_now().await;
    spanned(number).await;
}

#[instrument]
async fn spanned(number: u64) {
    tokio::task::yield_now().await;
    leaf(number);
}

#[probe]
fn leaf(_number: u64) {}

/// Spans and calls in the order of their trace: (eoi, ess, name).
fn tree(records: &Records) -> Vec<(i64, i64, String)> {
    let name = |entry: &Entry| {
        let signature = entry.text("operationSignature");
        let head = signature.split('(').next().unwrap();
        head.rsplit(['.', ' ']).next().unwrap().to_owned()
    };
    let mut tree: Vec<_> = records.0.iter().filter(|it| it.has("tout")).collect();
    tree.sort_by_key(|it| it.place());
    let tree = tree.into_iter();
    tree.map(|it| (it.signed("eoi"), it.signed("ess"), name(it)))
        .collect()
}

fn assert_one_trace(records: &Records) {
    let traces = records.0.iter().filter(|it| it.has("tout"));
    let mut traces: Vec<_> = traces.map(|it| it.signed("traceId")).collect();
    traces.dedup();
    assert_eq!(traces.len(), 1);
}

#[test]
fn probes_and_spans_nest_in_each_other() {
    let recording = Recording::start();
    probed(|| {
        leaf(1);
        info_span!("outer").in_scope(|| {
            leaf(2);
            probed(|| info_span!("inner").in_scope(|| leaf(3)));
            leaf(4);
        });
        leaf(5);
    });
    let records = recording.finish();
    assert_one_trace(&records);
    let expected = [
        (0, 0, "probed"),
        (1, 1, "leaf"),
        (2, 1, "outer"),
        (3, 2, "leaf"),
        (4, 2, "probed"),
        (5, 3, "inner"),
        (6, 4, "leaf"),
        (7, 2, "leaf"),
        (8, 1, "leaf"),
    ];
    assert_eq!(
        tree(&records),
        expected.map(|(eoi, ess, name)| (eoi, ess, name.to_owned()))
    );
    // The nearest span around it.
    assert_eq!(records.end("inner").parent(), records.end("outer").id());
    // The id in other processes belongs to the trace of the probe.
    let header = records.end("outer").unsigned("w3cTraceLow");
    assert_eq!(
        i64::try_from(header).unwrap(),
        records.calls()[0].signed("traceId")
    );
}

#[test]
fn a_trace_that_a_span_begins_ends_with_it() {
    let recording = Recording::start();
    info_span!("first").in_scope(|| leaf(1));
    leaf(2);
    let _probe = enter!("block()");
    drop(_probe);
    assert_eq!(TraceContext::current().trace_id(), None);
    let records = recording.finish();
    let calls = records.calls();
    assert_eq!(
        calls[0].value("traceId"),
        records.end("first").value("traceId")
    );
    assert_eq!(calls[0].place().1, 1);
    assert_ne!(calls[1].place().0, calls[0].place().0);
    assert_eq!((calls[1].place().1, calls[2].place().1), (0, 0));
}

#[test]
fn asynchronous_probes_and_spans_share_the_trace_of_their_task() {
    let recording = Recording::start();
    let runtime = recording.runtime(8);
    let tasks: Vec<_> = (0..100)
        .map(|number| {
            let root = info_span!("root", number);
            runtime.spawn(probed_async(number).instrument(root))
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    drop(runtime);
    let records = recording.finish();
    records.assert_paired();
    assert_eq!(records.calls().len(), 200);
    for root in records.ends().iter().filter(|it| it.text("name") == "root") {
        let trace = root.signed("traceId");
        let of_trace = records
            .0
            .iter()
            .filter(|it| it.has("tout") && it.signed("traceId") == trace);
        let mut places: Vec<_> = of_trace.map(Entry::place).collect();
        places.sort_unstable();
        assert_eq!(
            places,
            [(trace, 0, 0), (trace, 1, 1), (trace, 2, 2), (trace, 3, 3)]
        );
        let ends = records.ends();
        let spanned: Vec<_> = ends
            .iter()
            .filter(|it| it.parent() == root.id() && it.trace() == root.trace())
            .collect();
        assert_eq!(spanned.len(), 1);
        assert_eq!(spanned[0].unsigned("number"), root.unsigned("number"));
    }
}

#[probe(record = events)]
fn evented(run: impl FnOnce()) {
    run();
}

#[test]
fn traces_of_events_name_the_trace_of_their_span() {
    let recording = Recording::start();
    info_span!("outer").in_scope(|| evented(|| info_span!("inner").in_scope(|| ())));
    evented(|| info_span!("alone").in_scope(|| ()));
    let records = recording.finish();
    let outer = records.end("outer");
    assert_eq!(records.end("inner").parent(), outer.id());
    let metadata = records.of_type("kieker.common.record.flow.trace.TraceMetadata");
    let of = |trace: i64| metadata.iter().find(|it| it.signed("traceId") == trace);
    assert_eq!(metadata[0].value("parentTraceId"), outer.value("traceId"));
    assert_eq!(metadata[0].value("parentOrderId"), outer.value("eoi"));
    let alone = of(records.end("alone").signed("traceId")).unwrap();
    assert_eq!(alone.value("parentTraceId"), metadata[1].value("traceId"));
}
