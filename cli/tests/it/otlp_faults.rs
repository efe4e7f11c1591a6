//! Senders of OTLP, the relay and its target are killed; the target is away. What was answered as
//! accepted is there in the end.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use baler_connector_testkit::faults::free_port;
use serde_json::{Value, json};

use crate::hostile::peak_memory;
use crate::relay::RelayProcess;
use crate::support::{file_uri, json_lines, output, wait_for};

/// Sends a request of log records with these names. Returns the status of the answer and its headers,
/// or nothing if the connection broke.
fn post(address: SocketAddr, names: &[String], padding: &str) -> Option<(u16, String)> {
    let body = body(names, padding);
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(&request(&body)).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.strip_prefix("HTTP/1.1 ")?.get(..3)?;
    Some((status.parse().unwrap(), answer))
}

fn body(names: &[String], padding: &str) -> String {
    let record = |name: &String| json!({ "eventName": name, "body": { "stringValue": padding } });
    let records: Vec<_> = names.iter().map(record).collect();
    json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": records }] }] }).to_string()
}

fn request(body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST /v1/logs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into()
}

/// Returns the names of all log records in a folder of chunks.
fn names_in(uri: &str) -> BTreeSet<String> {
    let text = output(&[
        "receive",
        "--from",
        uri,
        "--idle-timeout",
        "1s",
        "--format",
        "json",
    ]);
    let name = |it: Value| it["fields"]["event_name"].as_str().unwrap().to_owned();
    json_lines(&text).into_iter().map(name).collect()
}

fn address(relay: &RelayProcess) -> SocketAddr {
    relay.uri.trim_start_matches("tcp://").parse().unwrap()
}

#[test]
fn answered_requests_survive_kills_of_senders_relay_and_target() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (stored, to) = (file_uri(&path("stored")), free_port().unwrap());
    let (to, otlp) = (format!("tcp://127.0.0.1:{to}"), free_port().unwrap());
    let from = format!("otlp+http://127.0.0.1:{otlp}");
    let start_target = || RelayProcess::start(&to, &stored, &path("target"), &[]);
    let start = || RelayProcess::start(&from, &to, &path("relay"), &[]);
    let (mut target, mut relay) = (start_target(), start());
    let relay_address = address(&relay);

    let ended = AtomicBool::new(false);
    let send = |sender: usize| {
        let (mut answered, mut number) = (BTreeSet::new(), 0);
        while !ended.load(Ordering::Relaxed) {
            number += 1;
            let names: Vec<_> = (0..20)
                .map(|it| format!("{sender} {number} {it}"))
                .collect();
            // As if the sender were killed: in the body, or before the answer.
            if number % 5 == 0 {
                let request = request(&body(&names, ""));
                let sent = if number % 2 == 0 {
                    request.len() / 2
                } else {
                    request.len()
                };
                if let Ok(mut stream) = TcpStream::connect(relay_address) {
                    stream.write_all(&request[..sent]).ok();
                }
                continue;
            }
            match post(relay_address, &names, "") {
                Some((200, _)) => answered.extend(names),
                _ => thread::park_timeout(Duration::from_millis(20)),
            }
        }
        answered
    };
    let answered = thread::scope(|scope| {
        let senders: Vec<_> = (0..4).map(|it| scope.spawn(move || send(it))).collect();
        let pause = || thread::park_timeout(Duration::from_millis(500));
        for _ in 0..3 {
            pause();
            target.process.signal("KILL");
            pause();
            target = start_target();
            pause();
            relay.process.signal("KILL");
            pause();
            relay = start();
        }
        pause();
        ended.store(true, Ordering::Relaxed);
        senders
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect::<BTreeSet<_>>()
    });
    for relay in [relay, target] {
        let (summary, code) = relay.end();
        assert_eq!((code, &summary["quarantined"]), (0, &json!(0)), "{summary}");
    }
    assert!(answered.len() > 1_000, "{} answered", answered.len());
    let lost: Vec<_> = answered.difference(&names_in(&stored)).cloned().collect();
    assert!(
        lost.is_empty(),
        "{} of {} lost: {:?}",
        lost.len(),
        answered.len(),
        lost.first()
    );
}

#[test]
fn while_the_target_is_away_requests_wait_within_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let to = format!("tcp://127.0.0.1:{}", free_port().unwrap());
    let from = "otlp+http://127.0.0.1:0?memory=16MiB";
    let relay = RelayProcess::start(from, &to, &path("relay"), &[]);
    let relay_address = address(&relay);
    let padding = "x".repeat(2_000_000);
    let refused = AtomicBool::new(false);
    let (target, stored) = thread::scope(|scope| {
        for sender in 0..40 {
            let (padding, refused) = (&padding, &refused);
            scope.spawn(move || {
                let names = [format!("sender {sender}")];
                // As the specification says: again after the time of the answer.
                while let Some((status, answer)) = post(relay_address, &names, padding) {
                    match status {
                        200 => return,
                        429 => assert!(answer.contains("retry-after: 1"), "{answer}"),
                        other => panic!("{other}: {answer}"),
                    }
                    refused.store(true, Ordering::Relaxed);
                    thread::park_timeout(Duration::from_secs(1));
                }
                panic!("the connection broke");
            });
        }
        wait_for("a refusal", || {
            refused.load(Ordering::Relaxed).then_some(())
        });
        // All senders have had their turn at least once.
        thread::park_timeout(Duration::from_secs(2));
        let stored = file_uri(&path("stored"));
        (
            RelayProcess::start(&to, &stored, &path("target"), &[]),
            stored,
        )
    });
    let peak = peak_memory(&relay.process);
    for relay in [relay, target] {
        let (summary, code) = relay.end();
        assert_eq!(code, 0, "{summary}");
    }
    assert_eq!(names_in(&stored).len(), 40);
    assert!(peak < 200 << 20, "{} MiB", peak >> 20);
}
