//! A writer and hostile answers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkWriter, RetryClass, TransportError};
use baler_connector_tcp::TcpWriter;
use baler_connector_testkit::{ChunkSource, PATIENCE, within_patience};

use crate::support::config;
use baler_connector_testkit::hostile::{Header, Hello, SENDER};

const RECEIVER: Hello = Hello { role: 2, ..SENDER };

/// Returns a writer to a peer that takes one connection, reads the hello and then runs `answer`.
fn writer_to(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> TcpWriter {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 40]).unwrap();
        answer(&mut stream);
        // Until the writer leaves.
        stream.read_to_end(&mut Vec::new()).ok();
    });
    TcpWriter::new(config(port))
}

/// Returns the error of opening a writer that gets this answer.
fn refused(answer: Vec<u8>) -> TransportError {
    let mut writer = writer_to(move |stream| stream.write_all(&answer).unwrap());
    writer.reopen(Instant::now() + PATIENCE).unwrap_err()
}

/// Returns the error of a writer that opened, offered one chunk, and got these frames.
fn broken(frames: Vec<u8>) -> TransportError {
    let mut writer = writer_to(move |stream| {
        stream.write_all(&RECEIVER.bytes()).unwrap();
        stream.read_exact(&mut [0; 28]).unwrap();
        stream.write_all(&frames).unwrap();
    });
    writer.reopen(Instant::now() + PATIENCE).unwrap();
    writer.offer(ChunkSource::new(1).next(0, 50)).unwrap();
    within_patience("the writer breaks", || {
        writer.delivery_reports(&mut Vec::new()).err()
    })
}

#[test]
fn answers_that_cannot_change_are_final() {
    let table = [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n<html></html>".to_vec(),
            "does not speak",
        ),
        (
            Hello {
                versions: (2, 3),
                ..RECEIVER
            }
            .bytes(),
            "the peer speaks versions 2 to 3 of the protocol, this side version 1",
        ),
        (SENDER.bytes(), "the peer is a sender, a receiver is needed"),
    ];
    for (answer, message) in table {
        let error = refused(answer);
        assert_eq!(error.class, RetryClass::Final, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn answers_that_may_change_are_worth_another_try() {
    let mut flipped = RECEIVER.bytes();
    flipped[20] ^= 1;
    for answer in [
        flipped,
        Hello {
            heartbeat_ms: 0,
            ..RECEIVER
        }
        .bytes(),
    ] {
        let error = refused(answer);
        assert!(error.is_retryable(), "{error}");
    }
}

#[test]
fn answer_that_does_not_come_is_given_up_in_time() {
    let mut writer = writer_to(|_| ());
    let start = Instant::now();
    let error = writer
        .reopen(start + Duration::from_millis(100))
        .unwrap_err();
    assert!(error.is_retryable());
    assert!(error.to_string().contains("no answer in time"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn smaller_limits_hold() {
    let mut writer = writer_to(|stream| stream.write_all(&RECEIVER.bytes()).unwrap());
    assert_eq!(writer.capability().window_chunks.get(), 32);
    writer.reopen(Instant::now() + PATIENCE).unwrap();
    let capability = writer.capability();
    assert_eq!(capability.window_chunks.get(), 8);
    assert_eq!(capability.window_bytes.get(), 60_000);
    assert_eq!(capability.max_chunk_bytes.get(), 20_000);
}

#[test]
fn frames_that_cannot_be_break_the_writer() {
    let mut flipped = Header::short(2, 1).bytes();
    flipped[16] ^= 2;
    let acknowledgement = |chunks| Header::short(2, chunks).bytes();
    let table = [
        (flipped, "checksum"),
        (
            acknowledgement(2),
            "2 chunks are acknowledged, between 0 and 1 are possible",
        ),
        (acknowledgement(u64::MAX), "are acknowledged"),
        (
            [acknowledgement(1), acknowledgement(0)].concat(),
            "0 chunks are acknowledged, between 1",
        ),
        (
            Header {
                container: 2,
                ..Header::short(1, 0)
            }
            .bytes(),
            "1 is not allowed",
        ),
        (Header::short(9, 0).bytes(), "9 is not allowed"),
        (Header::short(4, 0).bytes(), "the receiver is closing"),
    ];
    for (frames, message) in table {
        let error = broken(frames);
        assert!(error.is_retryable(), "{error}");
        assert!(
            error.to_string().contains(message),
            "{error} instead of {message}"
        );
    }
}
