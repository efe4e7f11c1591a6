//! Kieker's calls as spans.

use baler_common::record::AnyValue;
use baler_common::transport::{ChunkReader as _, Verdict};
use baler_connector_kieker::types::OperationExecutionRecord;
use baler_connector_otlp::OtlpWriterConfig;
use baler_connector_otlp::types::Span;

use crate::support::{chunk_of, count, decoded, fate, open, reader, receive};
use baler_common::transport::ChunkWriter as _;

fn call(trace_id: i64, eoi: i32, ess: i32, times: (i64, i64)) -> OperationExecutionRecord {
    OperationExecutionRecord {
        operation_signature: "public void shop.Cart.add(int, Item)".into(),
        session_id: "s".into(),
        trace_id,
        tin: times.0,
        tout: times.1,
        hostname: "host".into(),
        eoi,
        ess,
    }
}

/// Sends calls and returns the spans that arrive, and the number of those without a known caller.
fn spans(ticket: u64, calls: &[OperationExecutionRecord]) -> (Vec<Span>, u64) {
    let mut reader = reader(|_| ());
    let mut writer = open(OtlpWriterConfig::grpc(
        "127.0.0.1",
        reader.local_addr().unwrap().port(),
    ));
    let chunk = chunk_of(ticket, calls);
    let sending = std::thread::spawn(move || {
        assert_eq!(fate(&mut writer, chunk), Ok(()));
        count(&writer.stats().counts, "spans_without_parent")
    });
    let delivery = receive(&mut reader);
    reader.settle(delivery.token, Verdict::Ack).unwrap();
    let spans = decoded(&delivery.bytes).read().collect::<Result<_, _>>();
    (spans.unwrap(), sending.join().unwrap())
}

/// Two traces, interleaved, in the order in which their calls end.
fn calls() -> Vec<OperationExecutionRecord> {
    vec![
        call(7, 2, 2, (12, 13)),
        call(8, 0, 0, (10, 30)),
        call(7, 1, 1, (11, 14)),
        call(7, 4, 2, (16, 17)),
        call(7, 3, 1, (15, 18)),
        call(7, 0, 0, (10, 20)),
    ]
}

#[test]
fn calls_become_spans_with_their_callers() {
    let (spans, without) = spans(1, &calls());
    assert_eq!(without, 0);
    let parents: Vec<_> = spans
        .iter()
        .map(|it| {
            spans
                .iter()
                .position(|span| span.span_id == it.parent_span_id)
        })
        .collect();
    assert_eq!(parents, [Some(2), None, Some(5), Some(4), Some(5), None]);
    let trace = |it: &Span| it.trace_id;
    assert!(
        spans
            .iter()
            .all(|it| (trace(it) == trace(&spans[0])) == (trace(it) != trace(&spans[1])))
    );
    let span = &spans[0];
    assert_eq!(
        (
            &*span.name,
            span.start_time_unix_nano,
            span.end_time_unix_nano
        ),
        ("shop.Cart.add", 12, 13)
    );
    let attribute = |name: &str| {
        let attribute = span.attributes.0.iter().find(|(key, _)| key == name);
        attribute.map(|(_, value)| value.clone())
    };
    let text = |value: &'static str| AnyValue::String(value.into());
    assert_eq!(attribute("session.id"), Some(text("s")));
    let signature = text("public void shop.Cart.add(int, Item)");
    assert_eq!(attribute("kieker.signature"), Some(signature));
    assert_eq!(attribute("kieker.eoi"), Some(AnyValue::I64(2)));
    let service = ("service.name".to_owned(), text("host"));
    assert_eq!(span.resource.attributes.0[0], service);
}

#[test]
fn callers_in_a_later_chunk_are_found() {
    let mut reader = reader(|_| ());
    let mut config = OtlpWriterConfig::grpc("127.0.0.1", reader.local_addr().unwrap().port());
    config.hold = std::time::Duration::from_secs(600);
    let mut writer = open(config);
    let all = calls();
    // The first three come alone, and wait for the end of both traces.
    writer.offer(chunk_of(1, &all[..3])).unwrap();
    assert!(matches!(
        reader
            .receive(std::time::Instant::now() + std::time::Duration::from_millis(200))
            .unwrap(),
        baler_common::transport::Received::Idle
    ));
    writer.offer(chunk_of(2, &all[3..])).unwrap();
    let mut received = Vec::new();
    for _ in 0..2 {
        let delivery = receive(&mut reader);
        reader.settle(delivery.token, Verdict::Ack).unwrap();
        let spans = decoded(&delivery.bytes)
            .read()
            .collect::<Result<Vec<Span>, _>>();
        received.extend(spans.unwrap());
    }
    let (expected, _) = spans(1, &all);
    for span in expected {
        assert!(received.contains(&span), "{span:?}");
    }
    crate::support::report(&mut writer);
    assert_eq!(count(&writer.stats().counts, "spans_without_parent"), 0);
}

#[test]
fn ids_are_the_same_in_other_chunks() {
    let (all, _) = spans(1, &calls());
    let ids = |spans: &[Span]| -> Vec<_> {
        spans
            .iter()
            .map(|it| (it.trace_id.high, it.trace_id.low, it.span_id))
            .collect()
    };
    // Without its caller a call has no parent, and not a wrong one.
    let (some, without) = spans(2, &calls()[..4]);
    assert_eq!(ids(&some), ids(&all[..4]));
    let parents: Vec<_> = some.iter().map(|it| it.parent_span_id).collect();
    assert_eq!(parents, [all[2].span_id, 0, 0, 0]);
    assert_eq!(without, 2);
}

#[test]
fn calls_without_a_trace_are_traces_of_their_own() {
    let calls = [call(-1, -1, -1, (1, 2)), call(-1, -1, -1, (1, 2))];
    let (first, without) = spans(1, &calls);
    assert_eq!(without, 0);
    let (again, _) = spans(1, &calls);
    assert_eq!(first, again);
    let (other, _) = spans(2, &calls);
    let ids = [&first[0], &first[1], &other[0], &other[1]].map(|it| it.trace_id.low);
    let distinct: std::collections::HashSet<_> = ids.into_iter().collect();
    assert_eq!(distinct.len(), 4);
}
