//! Traces that come from other processes, and go there.

use baler_monitoring::{TraceContext, TraceParent, probe};
use baler_tracing::{traceparent, with_remote_parent};
use tracing::info_span;

use super::support::Recording;

const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;
const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[probe]
fn probed<T>(run: impl FnOnce() -> T) -> T {
    run()
}

#[test]
fn a_request_continues_the_trace_of_its_header_and_passes_it_on() {
    let recording = Recording::start();
    let _busy = info_span!("busy").entered();
    let request = with_remote_parent(HEADER.parse().ok(), || info_span!("request"));
    let (sent, sent_by_probe) = request.in_scope(|| {
        let inner = info_span!("inner").entered();
        let sent = traceparent();
        (
            sent,
            probed(|| {
                drop(inner);
                TraceContext::current().traceparent()
            }),
        )
    });
    drop((request, _busy));
    let records = recording.finish();
    records.assert_paired();
    let [request, inner] = ["request", "inner"].map(|name| records.end(name));
    assert_eq!(
        (request.trace(), request.parent()),
        (TRACE, 0x00f0_67aa_0ba9_02b7)
    );
    assert_eq!((inner.trace(), inner.parent()), (TRACE, request.id()));
    let sent = sent.unwrap();
    assert_eq!((sent.trace_id(), sent.parent_id()), (TRACE, inner.id()));
    assert!(sent.is_sampled());
    let sent: TraceParent = sent.to_string().parse().unwrap();
    assert_eq!(sent.trace_id(), TRACE);
    assert_eq!(sent_by_probe.unwrap().trace_id(), TRACE);
    // Probes have the id of this process, and one record with the parent.
    let metadata = records.of_type("kieker.common.record.flow.trace.TraceMetadata");
    assert_eq!(metadata.len(), 1);
    assert_eq!(metadata[0].value("traceId"), request.value("traceId"));
    assert_eq!(
        records.calls()[0].value("traceId"),
        request.value("traceId")
    );
    assert_ne!(records.end("busy").trace(), TRACE);
}

#[test]
fn only_the_first_span_has_the_remote_parent() {
    let recording = Recording::start();
    with_remote_parent(HEADER.parse().ok(), || {
        info_span!("first").in_scope(|| info_span!("child").in_scope(|| ()));
    });
    with_remote_parent(None, || drop(info_span!("without")));
    let unused = with_remote_parent(HEADER.parse().ok(), || 1);
    drop(info_span!("later"));
    let records = recording.finish();
    let first = records.end("first");
    assert_eq!((first.trace(), unused), (TRACE, 1));
    assert_eq!(records.end("child").parent(), first.id());
    assert_ne!(records.end("without").trace(), TRACE);
    assert_ne!(records.end("later").trace(), TRACE);
}

#[test]
fn a_span_in_an_attached_context_continues_it() {
    let recording = Recording::start();
    let parent: TraceParent = HEADER.parse().unwrap();
    {
        let _attached = TraceContext::continuing(&parent).attach();
        drop(info_span!("request"));
    }
    drop(info_span!("later"));
    let records = recording.finish();
    let request = records.end("request");
    assert_eq!(
        (request.trace(), request.parent()),
        (TRACE, parent.parent_id())
    );
    assert_ne!(records.end("later").trace(), TRACE);
}

#[test]
fn the_receiver_knows_the_span_of_a_process_with_baler() {
    let recording = Recording::start();
    let sent = info_span!("client").in_scope(|| traceparent().unwrap());
    let (header, state) = (sent.to_string(), sent.state().unwrap());
    let received: TraceParent = header.parse().unwrap();
    let server = with_remote_parent(Some(received.with_state(&state)), || info_span!("server"));
    drop(server);
    assert_eq!(traceparent(), None);
    let records = recording.finish();
    let [client, server] = ["client", "server"].map(|name| records.end(name));
    assert_eq!(
        (server.trace(), server.parent()),
        (client.trace(), client.id())
    );
    let metadata = records.of_type("kieker.common.record.flow.trace.TraceMetadata");
    assert_eq!(metadata[0].value("parentTraceId"), client.value("traceId"));
    assert_eq!(metadata[0].value("parentOrderId"), client.value("eoi"));
}
