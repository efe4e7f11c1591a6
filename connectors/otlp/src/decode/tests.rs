//! Hostile and malformed requests.

use baler_common::transport::{Chunk, ChunkIdentity, Epoch, ProducerId};
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use prost::Message as _;

use super::{Form, Json, Protobuf, Sink, decode};
use crate::compression::Compression;
use crate::error::{BadRequest, Malformed};
use crate::limits::{Budget, MAX_BODY_BYTES, MAX_RECORD_BYTES};
use crate::protocol::Signal;
use crate::sink::Rejected;

fn sink() -> Sink {
    let epoch = Epoch {
        start_unix_ns: 1,
        random: 1,
    };
    Sink::new(ChunkIdentity::first(ProducerId::new(1), epoch, 0), 4 << 20)
}

/// Decodes a good request.
pub(crate) fn decoded<F: Form>(signal: Signal, body: &[u8]) -> (Vec<Chunk>, Rejected) {
    let mut sink = sink();
    decode::<F>(signal, body, &mut sink).unwrap();
    let (chunks, rejected) = sink.finish();
    let chunks = chunks.into_iter().map(|it| Chunk {
        ticket: it.meta.identity.sequence,
        meta: it.meta,
        bytes: it.bytes.into(),
    });
    (chunks.collect(), rejected)
}

/// Returns a field of a length.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    prost::encoding::encode_varint(bytes.len() as u64, &mut field);
    field.extend(bytes);
    field
}

/// Returns a request in protobuf with these items.
fn request(items: &[&[u8]]) -> Vec<u8> {
    let items: Vec<u8> = items.iter().flat_map(|it| field(2, it)).collect();
    field(1, &field(2, &items))
}

fn log(text: &str) -> Vec<u8> {
    let log = LogRecord {
        event_name: text.into(),
        ..LogRecord::default()
    };
    log.encode_to_vec()
}

/// Returns the records that are in chunks, and those that are not.
fn outcome<F: Form>(signal: Signal, body: &[u8]) -> (u32, Vec<(Malformed, u64)>) {
    let (chunks, rejected) = decoded::<F>(signal, body);
    let records = chunks.iter().map(|it| it.meta.records).sum();
    (records, rejected.into_iter().collect())
}

#[test]
fn a_malformed_record_costs_only_itself() {
    let (good, not_a_message) = (log("good"), [0xff; 3]);
    let bad_text = field(12, &[0xff]);
    let bad_id = field(9, &[1; 15]);
    let large = log(&"x".repeat(MAX_RECORD_BYTES));
    let body = request(&[&good, &not_a_message, &bad_text, &bad_id, &large, &good]);
    let rejected = vec![
        (Malformed::Id, 1),
        (Malformed::Message, 2),
        (Malformed::Size, 1),
    ];
    assert_eq!(outcome::<Protobuf>(Signal::Logs, &body), (2, rejected));
}

#[test]
fn a_malformed_record_costs_only_itself_in_json() {
    let body = r#"{"unknown": [{}], "resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"severityText": "good", "unknown": {"deep": [1]}},
        {"traceId": "0123"}, {"severityNumber": "x"}, 7,
        {"body": {"stringValue": "good"}}
    ]}]}]}"#;
    let rejected = vec![(Malformed::Id, 1), (Malformed::Message, 2)];
    assert_eq!(
        outcome::<Json>(Signal::Logs, body.as_bytes()),
        (2, rejected)
    );
}

#[test]
fn a_malformed_source_costs_its_records() {
    let good = field(2, &field(2, &log("good")));
    let bad = [field(1, &[0xff; 3]), good.clone()].concat();
    let body = [field(1, &bad), field(1, &good)].concat();
    let rejected = vec![(Malformed::Message, 1)];
    assert_eq!(outcome::<Protobuf>(Signal::Logs, &body), (1, rejected));
}

#[test]
fn a_span_needs_its_ids_and_a_metric_a_data_point() {
    let body = request(&[&[]]);
    let rejected = |reason| (0, vec![(reason, 1)]);
    let outcome = outcome::<Protobuf>;
    assert_eq!(outcome(Signal::Traces, &body), rejected(Malformed::Id));
    assert_eq!(outcome(Signal::Metrics, &body), rejected(Malformed::NoData));
    // An empty gauge.
    let body = request(&[&field(5, &[])]);
    assert_eq!(outcome(Signal::Metrics, &body), rejected(Malformed::NoData));
}

#[test]
fn empty_requests_are_taken() {
    assert_eq!(outcome::<Protobuf>(Signal::Traces, b""), (0, vec![]));
    for body in [
        "{}",
        r#"{"resourceSpans": null}"#,
        r#"{"resourceSpans": [{}]}"#,
    ] {
        assert_eq!(
            outcome::<Json>(Signal::Traces, body.as_bytes()),
            (0, vec![])
        );
    }
    assert_eq!(
        outcome::<Protobuf>(Signal::Logs, &request(&[&[]])),
        (1, vec![])
    );
}

#[test]
fn other_bodies_are_refused() {
    let whole = request(&[&log("good")]);
    for length in 1..whole.len() {
        let mut sink = sink();
        let decoded = decode::<Protobuf>(Signal::Logs, &whole[..length], &mut sink);
        assert_eq!(decoded, Err(BadRequest::Message), "{length} bytes");
    }
    for body in [
        "",
        "[]",
        "7",
        "{",
        "{} {}",
        r#"{"resourceLogs": 7}"#,
        "\u{feff}{}",
    ] {
        let decoded = decode::<Json>(Signal::Logs, body.as_bytes(), &mut sink());
        assert_eq!(decoded, Err(BadRequest::Message), "{body}");
    }
}

#[test]
fn deep_nesting_costs_only_the_record() {
    let mut value = AnyValue { value: None };
    for _ in 0..33 {
        let values = vec![value];
        value = AnyValue {
            value: Some(Value::ArrayValue(ArrayValue { values })),
        };
    }
    let log_records = vec![LogRecord {
        body: Some(value),
        ..LogRecord::default()
    }];
    let scope_logs = vec![ScopeLogs {
        log_records,
        ..ScopeLogs::default()
    }];
    let resource_logs = vec![ResourceLogs {
        scope_logs,
        ..ResourceLogs::default()
    }];
    let body = ExportLogsServiceRequest { resource_logs };
    let outcome_of = |body: &[u8]| outcome::<Protobuf>(Signal::Logs, body);
    let expected = (0, vec![(Malformed::Depth, 1)]);
    assert_eq!(outcome_of(&body.encode_to_vec()), expected);

    let mut value = Vec::new();
    for _ in 0..10_000 {
        value = field(5, &field(1, &value));
    }
    let expected = (1, vec![(Malformed::Message, 1)]);
    let body = request(&[&field(5, &value), &log("good")]);
    assert_eq!(outcome_of(&body), expected);

    let open = r#"{"arrayValue":{"values":["#.repeat(10_000);
    let close = "]}}".repeat(10_000);
    let body = format!(
        r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{open}{close}}},{{}}]}}]}}]}}"#
    );
    assert_eq!(outcome::<Json>(Signal::Logs, body.as_bytes()), expected);
    let brackets = "[".repeat(10_000);
    let decoded = decode::<Json>(Signal::Logs, brackets.as_bytes(), &mut sink());
    assert_eq!(decoded, Err(BadRequest::Message));
}

#[test]
fn bombs_are_refused_before_they_take_memory() {
    for compression in [Compression::Gzip, Compression::Zstd] {
        let budget = Budget::new(MAX_BODY_BYTES * 2);
        let bomb = compression.compress(vec![0; MAX_BODY_BYTES + 1]).unwrap();
        let small = Bytes::from(bomb);
        let mut share = budget.share();
        let result = compression.decompress(small.clone(), MAX_BODY_BYTES, &mut share);
        assert_eq!(result, Err(BadRequest::Size), "{compression:?}");
        // Beside another request, the memory of all ends first.
        drop(share);
        let budget = Budget::new(1 << 20);
        let (mut other, mut share) = (budget.share(), budget.share());
        assert!(other.grow(1));
        let result = compression.decompress(small, MAX_BODY_BYTES, &mut share);
        assert_eq!(result, Err(BadRequest::Overloaded), "{compression:?}");
        let damaged = Bytes::from_static(b"neither of both");
        drop(other);
        let result = compression.decompress(damaged, MAX_BODY_BYTES, &mut share);
        assert_eq!(result, Err(BadRequest::Compressed), "{compression:?}");
    }
    // A frame of zstd with a window of 3.75 TiB.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff, 0x01, 0x00, 0x00];
    let mut share = Budget::new(1 << 20).share();
    let body = Bytes::copy_from_slice(&window);
    let result = Compression::Zstd.decompress(body, MAX_BODY_BYTES, &mut share);
    assert_eq!(result, Err(BadRequest::Compressed));
}

#[test]
fn a_large_request_becomes_several_chunks() {
    let log = log("one of many");
    let body = request(&vec![&*log; 20_000]);
    let (chunks, rejected) = decoded::<Protobuf>(Signal::Logs, &body);
    let records: Vec<_> = chunks.iter().map(|it| it.meta.records).collect();
    assert_eq!((records, rejected.len()), (vec![8_192, 8_192, 3_616], 0));
    let sequences: Vec<_> = chunks.iter().map(|it| it.ticket).collect();
    assert_eq!(sequences, [0, 1, 2]);
}

#[test]
fn a_request_cannot_multiply_its_source() {
    let outcome = |signal, body: &[u8]| {
        let mut sink = sink();
        // Fewer records than in earnest, so that the test is quick.
        sink.max_work = 1 << 20;
        decode::<Protobuf>(signal, body, &mut sink).unwrap();
        let (chunks, rejected) = sink.finish();
        let records: u32 = chunks.iter().map(|it| it.meta.records).sum();
        (u64::from(records), rejected.into_iter().collect::<Vec<_>>())
    };
    // Each of 100,000 records would have the 50,000 attributes of the resource.
    let attributes = [0x0a_u8, 0x00].repeat(50_000);
    let logs = [0x12_u8, 0x00].repeat(100_000);
    let body = field(1, &[field(1, &attributes), field(2, &logs)].concat());
    let (records, rejected) = outcome(Signal::Logs, &body);
    assert!((1..20).contains(&records), "{records} records");
    assert_eq!(rejected, [(Malformed::Amount, 100_000 - records)]);
    // 100,000 data points share a long description.
    let points = field(5, &[0x0a_u8, 0x00].repeat(100_000));
    let metric = [field(2, &[b'x'; 100_000]), points].concat();
    let (records, rejected) = outcome(Signal::Metrics, &request(&[&metric]));
    assert!((1..20).contains(&records), "{records} data points");
    assert_eq!(rejected, [(Malformed::Amount, 100_000 - records)]);
}

#[test]
fn a_request_that_ends_in_damage_leaves_nothing_for_the_next_one() {
    let mut sink = sink();
    let good = request(&[&log("good")]);
    for rounds in 0..3 {
        sink.begin();
        // A record and its source, and then a field that ends too early.
        let mut bad = good.clone();
        bad.extend([0x0a, 100]);
        let decoded = decode::<Protobuf>(Signal::Logs, &bad, &mut sink);
        assert_eq!(decoded, Err(BadRequest::Message));
        sink.begin();
        decode::<Protobuf>(Signal::Logs, &good, &mut sink).unwrap();
        let (chunks, rejected) = sink.finish();
        let [chunk] = &chunks[..] else {
            panic!("{chunks:?}")
        };
        assert_eq!((chunk.meta.records, rejected.len()), (1, 0));
        assert_eq!(
            chunk.meta.identity.sequence, rounds,
            "no number is left out"
        );
    }
}
