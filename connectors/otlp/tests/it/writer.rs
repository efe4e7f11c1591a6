//! Answers to a writer.

use std::fs;
use std::num::NonZeroUsize;
use std::time::Instant;

use baler_common::record::Record;
use baler_common::transport::{ChunkWriter as _, RetryClass};
use baler_connector_otlp::types::{Gauge, Log, Number, Span, TraceId};
use baler_connector_otlp::{Others, OtlpWriterConfig};
use baler_connector_testkit::within_patience;

use crate::support::{chunk, chunk_of, count, fate, http, log, open, receiver, soon};

const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";

#[derive(Record)]
#[record(name = "a.Other")]
struct Other {}

#[derive(Record)]
#[record(name = "kieker.common.record.misc.KiekerMetadataRecord")]
struct Metadata {}

fn ok() -> Vec<u8> {
    http("200 OK", PROTOBUF, b"")
}

fn logs(records: usize) -> Vec<Log> {
    (0..records).map(|it| log(&it.to_string())).collect()
}

/// Sends one chunk of four records to a receiver with these answers. Returns the chunk's fate, and
/// the writer's counts.
fn send(answers: Vec<Vec<u8>>) -> (Result<(), String>, Vec<(&'static str, u64)>) {
    let (port, receiver) = receiver(answers);
    let mut writer = open(OtlpWriterConfig::http("127.0.0.1", port));
    let fate = fate(&mut writer, chunk_of(1, &logs(4)));
    receiver.join().unwrap();
    (fate, writer.stats().counts)
}

#[test]
fn a_request_is_repeated_when_the_receiver_says() {
    for status in ["429 X", "502 X", "503 X", "504 X"] {
        let begun = Instant::now();
        let (fate, counts) = send(vec![http(status, "Retry-After: 1\r\n", b"later"), ok()]);
        assert_eq!(fate, Ok(()), "{status}");
        assert!(begun.elapsed().as_millis() >= 1_000);
        assert_eq!(count(&counts, "repeated_requests"), 1);
        assert_eq!(count(&counts, "sent_records"), 4);
    }
}

#[test]
fn a_receiver_that_never_takes_it_gives_the_chunk_back() {
    let (fate, counts) = send(vec![http("503 X", "Retry-After: 0\r\n", b"busy"); 5]);
    let error = fate.unwrap_err();
    assert!(
        error.starts_with("Retry: ") && error.ends_with("HTTP status 503: busy"),
        "{error}"
    );
    assert_eq!(count(&counts, "repeated_requests"), 4);
}

#[test]
fn a_request_that_is_too_large_is_divided() {
    let large = || http("413 X", "", b"");
    let (fate, counts) = send(vec![large(), large(), ok(), ok(), ok()]);
    assert_eq!(fate, Ok(()));
    assert_eq!(count(&counts, "divided_requests"), 2);
    assert_eq!(count(&counts, "sent_records"), 4);
    // A single record that is too large is refused, and the others pass.
    let (fate, counts) = send(vec![large(), large(), large(), ok(), ok()]);
    assert!(fate.unwrap_err().starts_with("Final: "));
    assert_eq!(count(&counts, "refused_records"), 1);
    assert_eq!(count(&counts, "sent_records"), 3);
}

#[test]
fn requests_stay_below_the_limit() {
    let (port, receiver) = receiver(vec![ok(); 4]);
    let mut config = OtlpWriterConfig::http("127.0.0.1", port);
    config.compression = baler_connector_otlp::Compression::None;
    config.max_request_bytes = NonZeroUsize::new(1_500).unwrap();
    let mut writer = open(config);
    let records = vec![log(&"x".repeat(1_000)); 4];
    assert_eq!(fate(&mut writer, chunk_of(1, &records)), Ok(()));
    assert!(receiver.join().unwrap().iter().all(|it| *it <= 1_500));
}

#[test]
fn refusals_are_final_and_counted() {
    // A message of google.rpc.Status.
    let status = [&[0x12, 3][..], b"no!"].concat();
    let (fate, counts) = send(vec![http("400 X", PROTOBUF, &status)]);
    let error = fate.unwrap_err();
    assert!(
        error.starts_with("Final: ") && error.ends_with("HTTP status 400: no!"),
        "{error}"
    );
    assert_eq!(count(&counts, "refused_records"), 4);
    assert_eq!(count(&counts, "sent_records"), 0);
}

#[test]
fn a_partial_success_is_a_refusal_of_the_chunk() {
    let partial = [0x0a, 7, 0x08, 3, 0x12, 3, b'w', b'h', b'y'];
    let (fate, counts) = send(vec![http("200 OK", PROTOBUF, &partial)]);
    let error = fate.unwrap_err();
    assert!(error.starts_with("Final: "), "{error}");
    assert!(error.ends_with("rejected 3 of 4 records: why"), "{error}");
    assert_eq!(count(&counts, "rejected_records"), 3);
    assert_eq!(count(&counts, "sent_records"), 1);
}

#[test]
fn an_answer_above_the_limit_breaks_the_writer() {
    let (port, _receiver) = receiver(vec![http("200 OK", PROTOBUF, &vec![0; (4 << 20) + 1])]);
    let mut writer = open(OtlpWriterConfig::http("127.0.0.1", port));
    writer.offer(chunk_of(1, &logs(1))).unwrap();
    let error = within_patience("it breaks", || {
        writer.delivery_reports(&mut Vec::new()).err()
    });
    assert_eq!(error.class, RetryClass::Retry, "{error}");
}

#[test]
fn a_receiver_that_is_away_can_be_tried_again() {
    let mut writer = baler_connector_otlp::OtlpWriter::new(OtlpWriterConfig::grpc("127.0.0.1", 1));
    let error = writer.reopen(soon()).unwrap_err();
    assert!(
        error.is_retryable() && error.operation == "connect to",
        "{error}"
    );
}

#[test]
fn other_records_are_refused_or_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let mixed = |ticket| {
        chunk(ticket, |builder| {
            builder.push(&log("one")).unwrap();
            builder.push(&Other {}).unwrap();
            builder.push(&Metadata {}).unwrap();
        })
    };
    let mut config = OtlpWriterConfig::file(&path);
    let mut writer = open(config.clone());
    let error = fate(&mut writer, mixed(1)).unwrap_err();
    assert!(error.contains("a.Other has no form in OTLP"), "{error}");
    assert_eq!(count(&writer.stats().counts, "refused_records"), 3);
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    config.others = Others::Skip;
    let mut writer = open(config);
    assert_eq!(fate(&mut writer, mixed(1)), Ok(()));
    let counts = writer.stats().counts;
    assert_eq!(
        (
            count(&counts, "sent_records"),
            count(&counts, "skipped_records")
        ),
        (1, 2)
    );
    let undecodable = baler_common::transport::Chunk {
        bytes: vec![1, 2, 3].into(),
        ..mixed(2)
    };
    assert!(
        fate(&mut writer, undecodable)
            .unwrap_err()
            .contains("cannot be decoded")
    );
}

#[test]
fn files_have_a_line_for_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let mut writer = open(OtlpWriterConfig::file(&path));
    let span = Span {
        trace_id: TraceId { high: 0, low: 1 },
        span_id: 2,
        start_time_unix_nano: u64::MAX,
        ..Span::default()
    };
    let both = chunk(1, |builder| {
        builder.push(&log("one")).unwrap();
        builder.push(&span).unwrap();
    });
    assert_eq!(fate(&mut writer, both), Ok(()));
    assert_eq!(fate(&mut writer, chunk_of(2, &[log("two")])), Ok(()));
    assert_eq!(writer.stats().altered, 0);
    let infinite = Gauge {
        value: Number {
            i64: None,
            f64: Some(f64::INFINITY),
        },
        ..Gauge::default()
    };
    assert_eq!(fate(&mut writer, chunk_of(3, &[infinite])), Ok(()));
    assert_eq!(writer.stats().altered, 1);
    Box::new(writer).close(soon());
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    let spans = &lines[1]["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!(spans[0]["traceId"], "00000000000000000000000000000001");
    assert_eq!(spans[0]["startTimeUnixNano"], u64::MAX.to_string());
    let logs = &lines[2]["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
    assert_eq!(logs[0]["body"]["stringValue"], "two");
}
