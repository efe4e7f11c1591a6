//! Traces across processes.

use baler_connector_kieker::types::{OperationExecutionRecord, TraceMetadata};
use baler_monitoring::{TraceContext, TraceParent, in_trace, probe};

use super::asynchronous::{block_on, yield_times};
use super::recording::{Recording, of_type};

const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[probe]
fn serve() -> TraceParent {
    step();
    TraceContext::current().traceparent().unwrap()
}

#[probe]
fn step() {}

#[probe]
async fn serve_later() -> TraceParent {
    yield_times(1).await;
    TraceContext::current().traceparent().unwrap()
}

#[test]
fn each_trace_that_a_request_begins_is_told_with_its_parent() {
    let recording = Recording::start();
    let parent: TraceParent = HEADER.parse().unwrap();
    let attached = TraceContext::continuing(&parent).attach();
    let sent = serve();
    let _ = serve();
    drop(attached);
    let _ = serve();
    let batches = recording.finish_all();
    let calls: Vec<OperationExecutionRecord> = of_type(&batches);
    let told: Vec<TraceMetadata> = of_type(&batches);
    let roots: Vec<_> = calls
        .iter()
        .filter(|it| it.ess == 0)
        .map(|it| it.trace_id)
        .collect();
    assert_eq!(told.len(), 2);
    assert_eq!(told[0].trace_id, roots[0]);
    assert_eq!(told[1].trace_id, roots[1]);
    assert_eq!(told[0].parent_trace_id, 0x23ce_929d_0e0e_4736);
    assert_eq!(told[0].parent_order_id, -1);
    assert_eq!(told[0].session_id, HEADER);
    assert_eq!(told[0].hostname, "test-host");
    assert!(told[0].thread_id > 0);
    let quarters = |id: i64| (0..4).fold(0, |all, quarter| all ^ (id >> (16 * quarter)) & 0xffff);
    for root in &roots[..2] {
        let caller = quarters(0x23ce_929d_0e0e_4736);
        assert_eq!(quarters(*root), caller, "both go to the same lane");
    }
    // The id of the whole trace continues, and the next process learns its caller.
    assert_eq!(sent.trace_id(), parent.trace_id());
    assert_eq!(
        (sent.kieker_trace_id(), sent.kieker_order_id()),
        (roots[0], 1)
    );
}

#[test]
fn a_trace_that_begins_here_maps_to_an_id_for_all_processes() {
    let recording = Recording::start();
    let sent = serve();
    let received: TraceParent = sent.to_string().parse().unwrap();
    let batches = recording.finish_all();
    let calls: Vec<OperationExecutionRecord> = of_type(&batches);
    assert_eq!(received.kieker_trace_id(), calls[0].trace_id);
    assert!(of_type::<TraceMetadata>(&batches).is_empty());
    assert_eq!(TraceContext::current().traceparent(), None);
}

#[test]
fn a_task_takes_the_parent_along() {
    let recording = Recording::start();
    let parent: TraceParent = HEADER.parse().unwrap();
    let sent = block_on(in_trace(TraceContext::continuing(&parent), async {
        yield_times(1).await;
        serve_later().await
    }));
    assert_eq!(sent.trace_id(), parent.trace_id());
    let batches = recording.finish_all();
    let told: Vec<TraceMetadata> = of_type(&batches);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].trace_id, sent.kieker_trace_id());
}
