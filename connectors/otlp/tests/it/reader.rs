//! Requests to a reader.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::num::NonZeroUsize;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::ChunkWriter as _;
use baler_common::transport::{ChunkReader as _, Outcome, Received, Verdict};
use baler_connector_otlp::types::Log;
use baler_connector_otlp::{Compression, OtlpReader, OtlpWriterConfig};
use baler_connector_testkit::within_patience;
use serde_json::{Value, json};

use crate::support::{
    answer, chunk_of, count, decoded, fate, log, open, reader, receive, report, send, soon,
};

const JSON: &str = "Content-Type: application/json";
const ONE: &[u8] = br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"one"}]}]}]}"#;

/// Receives one chunk and settles it.
fn settle(reader: &mut OtlpReader, verdict: Verdict) {
    let delivery = receive(reader);
    reader.settle(delivery.token, verdict).unwrap();
}

#[test]
fn a_request_is_answered_after_its_chunk_is_acknowledged() {
    let mut reader = reader(|_| ());
    let mut stream = send(reader.local_addr().unwrap(), "/v1/logs", JSON, ONE);
    let delivery = receive(&mut reader);
    let records: Vec<Log> = decoded(&delivery.bytes)
        .read()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(records[0].event_name, "one");
    // Given back, it is not answered either.
    reader.settle(delivery.token, Verdict::Retry).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    assert!(stream.read(&mut [0]).is_err(), "it was answered");
    let again = receive(&mut reader);
    assert!(again.redelivered);
    assert_eq!(again.bytes, delivery.bytes);
    reader.settle(again.token, Verdict::Ack).unwrap();
    let answer = answer(stream);
    assert_eq!((answer.status, &*answer.text()), (200, "{}"));
}

#[test]
fn a_reader_that_closes_tells_senders_to_send_again() {
    let mut reader = reader(|_| ());
    let address = reader.local_addr().unwrap();
    let stream = send(address, "/v1/logs", JSON, ONE);
    let waiting = send(address, "/v1/logs", JSON, ONE);
    receive(&mut reader);
    within_patience("the other request", || {
        (count(&reader.stats().counts, "requests") == 2).then_some(())
    });
    let report = Box::new(reader).close(Instant::now() + Duration::from_secs(5));
    assert_eq!(report.unsettled, 1);
    for stream in [stream, waiting] {
        let answer = answer(stream);
        assert_eq!(answer.status, 503);
        assert!(
            answer.headers.contains("retry-after: 1"),
            "{}",
            answer.headers
        );
    }
}

#[test]
fn rejected_records_are_a_partial_success() {
    let mut reader = reader(|_| ());
    let address = reader.local_addr().unwrap();
    let body = br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"00"},{}]}]}]}"#;
    let stream = send(address, "/v1/logs", JSON, body);
    settle(&mut reader, Verdict::Reject);
    let partial = answer(stream);
    assert_eq!(partial.status, 200);
    let success = json!({ "errorMessage": "1: an id has the wrong length, or is missing", "rejectedLogRecords": "1" });
    let body: Value = serde_json::from_str(&partial.text()).unwrap();
    assert_eq!(body, json!({ "partialSuccess": success }));
    // Without a good record, there is nothing to wait for.
    let protobuf = "Content-Type: application/x-protobuf";
    let body = [0x0a, 4, 0x12, 2, 0x12, 0];
    let partial = answer(send(address, "/v1/traces", protobuf, &body));
    assert_eq!(usize::from(partial.body[1]), partial.body.len() - 2);
    assert_eq!(
        [partial.body[0], partial.body[2], partial.body[3]],
        [0x0a, 0x08, 1]
    );
    let counts = reader.stats().counts;
    assert_eq!(count(&counts, "rejected_bad_id"), 2);
    assert_eq!(
        (count(&counts, "requests"), count(&counts, "records")),
        (2, 1)
    );
}

#[test]
fn bad_requests_are_refused_and_counted() {
    let reader = reader(|_| ());
    let address = reader.local_addr().unwrap();
    let gzip = format!("{JSON}\r\nContent-Encoding: gzip");
    let large = format!("{JSON}\r\nX: y");
    let cases: [(&str, &str, &[u8], u16, &str); 7] = [
        ("/v1/log", JSON, b"{}", 404, "requests_to_wrong_path"),
        (
            "/v1/logs",
            "Content-Type: text/plain",
            b"{}",
            415,
            "requests_of_unknown_type",
        ),
        ("/v1/logs", "X: y", b"{}", 415, "requests_of_unknown_type"),
        (
            "/v1/logs",
            &format!("{JSON}\r\nContent-Encoding: br"),
            b"{}",
            415,
            "requests_of_unknown_compression",
        ),
        ("/v1/logs", &gzip, b"{}", 400, "requests_badly_compressed"),
        ("/v1/logs", JSON, b"[]", 400, "requests_not_readable"),
        (
            "/v1/logs",
            &large,
            &vec![b' '; (64 << 20) + 6],
            413,
            "requests_too_large",
        ),
    ];
    for (path, headers, body, status, name) in cases {
        let before = count(&reader.stats().counts, name);
        let stream = send(address, path, headers, body);
        // The rest of a body that is too large is not read, and may break the connection first.
        if status != 413 {
            assert_eq!(answer(stream).status, status, "{name}");
        }
        within_patience(name, || {
            (count(&reader.stats().counts, name) == before + 1).then_some(())
        });
    }
    let mut get = TcpStream::connect(address).unwrap();
    get.write_all(b"GET /v1/logs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert_eq!(answer(get).status, 405);
    let empty = answer(send(address, "/v1/metrics", JSON, b"{}"));
    assert_eq!((empty.status, &*empty.text()), (200, "{}"));
}

#[test]
fn a_reader_above_its_limits_asks_to_wait() {
    let mut reader = reader(|config| config.max_requests = NonZeroUsize::MIN);
    let address = reader.local_addr().unwrap();
    let first = send(address, "/v1/logs", JSON, ONE);
    let delivery = receive(&mut reader);
    let second = answer(send(address, "/v1/logs", JSON, ONE));
    assert_eq!(second.status, 429);
    assert!(
        second.headers.contains("retry-after: 1"),
        "{}",
        second.headers
    );
    // By gRPC the writer waits and sends again.
    let mut writer = open(OtlpWriterConfig::grpc("127.0.0.1", address.port()));
    writer.offer(chunk_of(1, &[log("x")])).unwrap();
    within_patience("it is refused", || {
        (count(&writer.stats().counts, "repeated_requests") > 0).then_some(())
    });
    reader.settle(delivery.token, Verdict::Ack).unwrap();
    assert_eq!(answer(first).status, 200);
    settle(&mut reader, Verdict::Ack);
    assert!(matches!(report(&mut writer).outcome, Outcome::Confirmed));
}

#[test]
fn requests_share_the_memory() {
    let mut reader = reader(|config| config.memory_bytes = NonZeroUsize::new(200).unwrap());
    let address = reader.local_addr().unwrap();
    let first = send(address, "/v1/logs", JSON, ONE);
    let delivery = receive(&mut reader);
    assert_eq!(answer(send(address, "/v1/logs", JSON, ONE)).status, 429);
    reader.settle(delivery.token, Verdict::Ack).unwrap();
    assert_eq!(answer(first).status, 200);
    let again = send(address, "/v1/logs", JSON, ONE);
    settle(&mut reader, Verdict::Ack);
    assert_eq!(answer(again).status, 200);
}

#[test]
fn a_sender_that_is_killed_costs_nothing_else() {
    let mut reader = reader(|config| config.max_requests = NonZeroUsize::MIN);
    let address = reader.local_addr().unwrap();
    // One within its body, one before its answer.
    let head = format!("{JSON}\r\nX: y");
    drop(send(address, "/v1/logs", &head, &ONE[..5]));
    let stream = TcpStream::connect(address).unwrap();
    (&stream).write_all(b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{").unwrap();
    drop(stream);
    let killed = within_patience("there is room for a request", || {
        let stream = send(address, "/v1/logs", JSON, ONE);
        match reader
            .receive(Instant::now() + Duration::from_millis(100))
            .unwrap()
        {
            Received::Chunk(delivery) => {
                drop(stream);
                Some(delivery)
            }
            _ => None,
        }
    });
    reader.settle(killed.token, Verdict::Ack).unwrap();
    within_patience("the place is free", || {
        let asking = thread::spawn(move || answer(send(address, "/v1/logs", JSON, ONE)).status);
        while !asking.is_finished() {
            // On a busy machine, chunks of the requests above may come only now.
            let by = Instant::now() + Duration::from_millis(10);
            if let Received::Chunk(delivery) = reader.receive(by).unwrap() {
                reader.settle(delivery.token, Verdict::Ack).unwrap();
            }
        }
        (asking.join().unwrap() == 200).then_some(())
    });
}

#[test]
fn each_protocol_and_compression_passes() {
    let mut reader = reader(|_| ());
    let port = reader.local_addr().unwrap().port();
    let mut ticket = 0;
    for protocol in [OtlpWriterConfig::grpc, OtlpWriterConfig::http] {
        for compression in [Compression::Gzip, Compression::None, Compression::Zstd] {
            let mut config = protocol("127.0.0.1", port);
            config.compression = compression;
            let mut writer = open(config);
            let (done, acknowledged) = channel();
            let records = vec![log("é"), log(&"long ".repeat(10_000))];
            let sent = records.clone();
            ticket += 1;
            let sending = thread::spawn(move || {
                let fate = fate(&mut writer, chunk_of(ticket, &sent));
                done.send(()).unwrap();
                (fate, Box::new(writer).close(soon()))
            });
            let delivery = receive(&mut reader);
            let received = decoded(&delivery.bytes)
                .read()
                .collect::<Result<Vec<Log>, _>>();
            assert_eq!(received.unwrap(), records);
            assert!(acknowledged.try_recv().is_err());
            reader.settle(delivery.token, Verdict::Ack).unwrap();
            let (fate, closed) = sending.join().unwrap();
            assert_eq!(fate, Ok(()), "{compression:?}");
            assert!(closed.error.is_none() && closed.unconfirmed.is_empty());
        }
    }
}
