//! Senders at a receiver that demands a token.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use baler_common::transport::{ChunkReader, ChunkWriter, Received, RetryClass};
use baler_connector_tcp::{TcpConfig, TcpReader, TcpWriter};
use baler_connector_testkit::{ChunkSource, PATIENCE, Pump, Tap, drive_pair};

use crate::support::{config, receiver, with};
use baler_connector_testkit::hostile::{self as wire, SENDER};

const TOKEN: &str = "a token of some length";

/// A sender's hello that says it has a token.
const CLAIMS_TOKEN: wire::Hello = wire::Hello {
    features: 1,
    ..SENDER
};

fn with_token(folder: &Path, port: u16, token: &str) -> TcpConfig {
    let path = folder.join(token.replace(['\n', ' '], "-"));
    fs::write(&path, token).unwrap();
    with(config(port), |config| config.token_file = Some(path))
}

fn guarded(folder: &Path) -> TcpReader {
    receiver(with_token(folder, 0, TOKEN))
}

#[test]
fn senders_are_admitted_by_their_token() {
    let folder = tempfile::tempdir().unwrap();
    // The receiver's token, the sender's token, and the reason of the refusal.
    let table: [(Option<&str>, Option<&str>, Option<&str>); 6] = [
        (None, None, None),
        (None, Some(TOKEN), None),
        (Some(TOKEN), Some(TOKEN), None),
        (Some(TOKEN), Some("a token of some length\r\n"), None),
        (
            Some(TOKEN),
            Some("a token of some lengtH"),
            Some("another token"),
        ),
        (Some(TOKEN), None, Some("demands a token")),
    ];
    for (ours, theirs, refusal) in table {
        let config_of = |port, token: Option<&str>| match token {
            None => config(port),
            Some(token) => with_token(folder.path(), port, token),
        };
        let mut reader = receiver(config_of(0, ours));
        let (port, counts) = (reader.local_addr().port(), reader.stats_handle());
        let mut writer = TcpWriter::new(config_of(port, theirs));
        match (writer.reopen(Instant::now() + PATIENCE), refusal) {
            (Ok(()), None) => {
                let mut pump = Pump::open(Box::new(TcpWriter::new(config_of(port, theirs))));
                let mut tap = Tap::new(Box::new(reader));
                pump.push(ChunkSource::new(1).take(5));
                drive_pair("chunks arrive", &mut pump, &mut tap, |pump, tap| {
                    pump.is_done() && tap.distinct() == 5
                });
                assert_eq!(counts().connections_refused, 0);
            }
            (Err(error), Some(reason)) => {
                let text = error.to_string();
                assert!(text.contains(reason) && !text.contains("lengt"), "{text}");
                assert_eq!(error.class, RetryClass::Final);
                let told = reader.receive(Instant::now() + PATIENCE).unwrap();
                let Received::Damaged(damaged) = told else {
                    panic!("a refused peer is named, not {told:?}");
                };
                assert!(damaged.reason.contains("token"), "{}", damaged.reason);
                assert!(damaged.origin.lane.starts_with("127.0.0.1:"));
                assert_eq!(counts().connections_refused, 1);
                assert_eq!(counts().connections, 0);
            }
            (result, refusal) => panic!("{ours:?} {theirs:?}: {result:?}, {refusal:?}"),
        }
    }
}

#[test]
fn peers_that_guess_or_repeat_a_proof_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut reader = guarded(folder.path());
    // A proof of 32 bytes, and directly after it a chunk that nobody may take.
    let (header, payload) = wire::chunk(0, b"forged");
    let frame = [header.bytes(), payload].concat();
    let mut challenges = Vec::new();
    for proof in [[0; 32], [0xff; 32], [7; 32]] {
        let mut stream = wire::connect(reader.local_addr());
        let answer = wire::greet(&mut stream, CLAIMS_TOKEN);
        assert_eq!(answer[14], 1, "the receiver demands a token");
        let mut challenge = [0; 32];
        stream.read_exact(&mut challenge).unwrap();
        challenges.push(challenge);
        stream.write_all(&proof).unwrap();
        stream.write_all(&frame).ok();
        let mut verdict = [9];
        // The refusal may be lost in the reset that the unread chunk causes.
        if stream.read_exact(&mut verdict).is_ok() {
            assert_eq!(verdict, [0]);
        }
        let told = reader.receive(Instant::now() + PATIENCE).unwrap();
        assert!(matches!(told, Received::Damaged(_)), "{told:?}");
    }
    challenges.dedup();
    assert_eq!(challenges.len(), 3, "a challenge is never used again");
    let counts = reader.stats_handle();
    assert_eq!((counts().connections_refused, counts().chunks), (3, 0));
}

#[test]
fn receiver_with_a_wrong_token_file_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let missing = with(config(0), |config| {
        config.token_file = Some(folder.path().join("missing"));
    });
    let short = with_token(folder.path(), 0, "hush-hush\n");
    for (config, reason) in [(missing, "missing"), (short, "has 9 bytes")] {
        let shown = format!("{config:?}");
        let error = TcpReader::bind(config).unwrap_err();
        assert_eq!(error.class, RetryClass::Final);
        assert!(error.to_string().contains(reason), "{error} {shown}");
    }
}
