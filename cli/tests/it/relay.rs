//! Chunks through a relay arrive whole, and are settled at the source when the target has them,
//! even if a process is killed.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{
    Background, Receiver, baler, file_uri, json as run_json, read_json, real_log, wait_for,
};

/// A relay on a port of loopback.
pub(crate) struct RelayProcess {
    pub(crate) process: Background,
    pub(crate) uri: String,
}

impl RelayProcess {
    /// Starts it between this source and target.
    pub(crate) fn start(from: &str, to: &str, folder: &Path, flags: &[&str]) -> Self {
        fs::create_dir_all(folder).unwrap();
        let port = folder.join("relay-port");
        fs::remove_file(&port).ok();
        let mut args = vec!["relay", "--from", from, "--to", to, "--format", "json"];
        args.extend(["--port-file", port.to_str().unwrap()]);
        args.extend(flags);
        let process = Background::start(&args);
        let address = wait_for("the relay's address", || fs::read_to_string(&port).ok());
        Self {
            process,
            uri: format!("tcp://{}", address.trim()),
        }
    }

    /// Starts it between a source that listens at no port, and this target.
    #[cfg(all(feature = "kafka", feature = "otlp"))]
    pub(crate) fn between(from: &str, to: &str) -> Self {
        let args = ["relay", "--from", from, "--to", to, "--format", "json"];
        Self {
            process: Background::start(&args),
            uri: String::new(),
        }
    }

    /// Asks it to end. Returns its summary, which adds up, and its exit code.
    pub(crate) fn end(self) -> (Value, i32) {
        self.process.signal("TERM");
        let (status, stdout, stderr) = self.process.end();
        // Shown if the test fails.
        eprint!("{stderr}");
        let summary: Value =
            serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
        adds_up(&summary);
        (summary, status.code().unwrap())
    }
}

/// Asserts that every received chunk is accounted for.
pub(crate) fn adds_up(summary: &Value) {
    let count = |name: &str| summary[name].as_u64().unwrap();
    let parts = ["forwarded", "spooled", "quarantined", "given_back"];
    let accounted: u64 = parts.into_iter().map(count).sum();
    assert_eq!(count("received"), accounted, "{summary}");
}

/// Generates records into a target, 100 a chunk.
pub(crate) fn generate(to: &str, records: u64) -> Value {
    let number = records.to_string();
    run_json(&[
        "generate",
        "--to",
        to,
        "--records",
        &number,
        "--chunk-records",
        "100",
        "--format",
        "json",
    ])
}

/// Receives from a source until it is silent; the summary.
pub(crate) fn receive(from: &str, folder: &Path) -> Value {
    fs::create_dir_all(folder).unwrap();
    let summary = folder.join("summary.json");
    let output = folder.join("records.jsonl");
    baler(&[
        "receive",
        "--from",
        from,
        "--idle-timeout",
        "3s",
        "--format",
        "json",
        "--identity",
        "--output",
        output.to_str().unwrap(),
        "--summary",
        summary.to_str().unwrap(),
    ])
    .success();
    read_json(&summary)
}

#[test]
fn the_log_goes_over_a_relay_and_another_one_in_both_containers() {
    for container in ["native", "kieker"] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let receiver = Receiver::start(&path("receiver"), &["--count", "6541", "--identity"]);
        let second = RelayProcess::start("tcp://127.0.0.1:0", &receiver.uri, &path("second"), &[]);
        let first = RelayProcess::start("tcp://127.0.0.1:0", &second.uri, &path("first"), &[]);
        let (log, to) = (real_log(), first.uri.clone());
        let sent = run_json(&[
            "send",
            "--from",
            &log,
            "--to",
            &to,
            "--container",
            container,
            "--format",
            "json",
        ]);
        assert_eq!(sent["delivered"], 6541);
        let (records, summary) = receiver.succeed();
        assert_eq!(records.lines().count(), 6541);
        // Kieker's container has no room for the identity; it was carried beside it.
        assert_eq!(
            (&summary["lanes"], &summary["gaps"]),
            (&json!(1), &json!([]))
        );
        for relay in [first, second] {
            let (summary, _) = relay.end();
            assert_eq!(summary["identities_made"], 0, "{summary}");
            assert!(summary["forwarded"].as_u64() > Some(0), "{summary}");
        }
    }
}

#[test]
fn a_folder_is_relayed_to_its_end_with_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let uri = |name: &str| file_uri(&folder.path().join(name));
    let (from, to) = (uri("from"), uri("to"));
    let sent = generate(&from, 50_000);
    let summary = run_json(&["relay", "--from", &from, "--to", &to, "--format", "json"]);
    adds_up(&summary);
    assert_eq!(summary["ended_by"], "end");
    assert_eq!(summary["forwarded_bytes"], sent["bytes"]);
    let received = receive(&to, &folder.path().join("received"));
    assert_eq!(
        (&received["records"], &received["lanes"]),
        (&json!(50_000), &json!(1))
    );
    let counted = run_json(&[
        "relay",
        "--from",
        &from,
        "--to",
        "null:",
        "--count-chunks",
        "7",
        "--format",
        "json",
    ]);
    assert_eq!(
        (&counted["received"], &counted["ended_by"]),
        (&json!(7), &json!("count"))
    );
}

#[test]
fn nothing_is_lost_when_a_relay_is_killed_in_mid_stream() {
    let folder = tempfile::tempdir().unwrap();
    let to = file_uri(&folder.path().join("to"));
    let first = RelayProcess::start("tcp://127.0.0.1:0", &to, folder.path(), &[]);
    let uri = first.uri.clone();
    let sender = Background::start(&[
        "generate",
        "--to",
        &uri,
        "--records",
        "200000",
        "--chunk-records",
        "50",
        "--format",
        "json",
    ]);
    let size = || -> u64 {
        let files = fs::read_dir(folder.path().join("to")).into_iter().flatten();
        files
            .map(|it| it.unwrap().metadata().map_or(0, |it| it.len()))
            .sum()
    };
    wait_for("a part of the chunks", || (size() > 300_000).then_some(()));
    first.process.signal("KILL");
    first.process.end();
    let second = RelayProcess::start(&uri, &to, folder.path(), &[]);
    let report: Value = serde_json::from_str(&sender.succeed()).unwrap();
    assert_eq!(report["delivered"], 200_000);
    let (summary, code) = second.end();
    assert!(
        summary["forwarded"].as_u64() > Some(0) && code == 0,
        "{summary}"
    );
    let received = receive(&to, &folder.path().join("received"));
    // The set is exact by identity: copies are known as such, and none is missing.
    assert_eq!(received["records"], 200_000, "{received}");
    assert_eq!(received["gaps"], json!([]));
}

#[test]
fn sigterm_while_the_target_is_away_ends_in_time_and_keeps_the_chunks_at_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--shutdown-timeout", "1s"];
    let relay = RelayProcess::start(
        "tcp://127.0.0.1:0",
        "tcp://127.0.0.1:1",
        folder.path(),
        &flags,
    );
    let uri = relay.uri.clone();
    let sender = Background::start(&[
        "generate",
        "--to",
        &uri,
        "--records",
        "2000",
        "--chunk-records",
        "100",
        "--format",
        "json",
    ]);
    // Only a second relay, whose target is there, can let the sender end.
    let began = std::time::Instant::now();
    wait_for("time for the chunks to come", || {
        (began.elapsed() > std::time::Duration::from_millis(500)).then_some(())
    });
    let (summary, code) = relay.end();
    assert_eq!((&summary["forwarded"], code), (&json!(0), 75), "{summary}");
    assert!(summary["given_back"].as_u64() > Some(0), "{summary}");
    let to = file_uri(&folder.path().join("to"));
    let second = RelayProcess::start(&uri, &to, folder.path(), &[]);
    let report: Value = serde_json::from_str(&sender.succeed()).unwrap();
    assert_eq!(report["delivered"], 2000);
    second.end();
    assert_eq!(
        receive(&to, &folder.path().join("received"))["records"],
        2000
    );
}

#[test]
fn several_hundred_senders_share_a_relay() {
    let folder = tempfile::tempdir().unwrap();
    let to = file_uri(&folder.path().join("to"));
    let relay = RelayProcess::start("tcp://127.0.0.1:0", &to, folder.path(), &[]);
    let address = relay.uri.trim_start_matches("tcp://").to_owned();
    // Connections that say nothing yet count as well.
    let silent: Vec<_> = (0..300)
        .map(|_| std::net::TcpStream::connect(&address).unwrap())
        .collect();
    let uri = relay.uri.clone();
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let uri = uri.clone();
            std::thread::spawn(move || generate(&uri, 10_000))
        })
        .collect();
    for sender in senders {
        assert_eq!(sender.join().unwrap()["delivered"], 10_000);
    }
    drop(silent);
    relay.end();
    let received = receive(&to, &folder.path().join("received"));
    assert_eq!(
        (&received["records"], &received["lanes"]),
        (&json!(40_000), &json!(4))
    );
}

#[test]
fn what_the_target_does_not_take_is_put_aside_in_a_folder_or_a_medium_and_stays_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let from = file_uri(&path("from"));
    generate(&from, 300);
    // The records of a chunk are above this limit.
    let to = format!("{}?max_chunk_bytes=200", file_uri(&path("to")));
    let relay = |flags: &[&str]| {
        let mut args = vec!["relay", "--from", &from, "--to", &to, "--format", "json"];
        args.extend(flags);
        baler(&args)
    };
    let refused = relay(&[]).code(74);
    let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(told.contains("there is no quarantine"), "{told}");
    let aside = path("aside");
    relay(&["--quarantine", aside.to_str().unwrap()]).code(65);
    let medium = file_uri(&path("medium"));
    let done = relay(&["--quarantine", &medium]).code(65);
    let summary: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    adds_up(&summary);
    // The producer's last chunk has no record, and passes.
    assert_eq!(
        (&summary["received"], &summary["forwarded"]),
        (&json!(4), &json!(1))
    );
    assert_eq!(
        (&summary["quarantined"], &summary["refused"]),
        (&json!(3), &json!(3))
    );
    let received = receive(&medium, &path("received"));
    assert_eq!(received["types"], json!({ "baler.Quarantined": 3 }));
    assert_eq!(fs::read_dir(&aside).unwrap().count(), 6);
}

#[test]
fn a_quarantine_that_is_full_ends_the_command_and_keeps_the_rest_at_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let from = file_uri(&path("from"));
    generate(&from, 300);
    let from = format!("{from}?consumer=relay");
    let to = format!("{}?max_chunk_bytes=200", file_uri(&path("to")));
    let one = path("one");
    let relay = |flags: &[&str]| {
        let mut args = vec!["relay", "--from", &from, "--to", &to, "--format", "json"];
        args.extend(flags);
        baler(&args)
    };
    relay(&["--quarantine", one.to_str().unwrap(), "--count-chunks", "1"]).code(65);
    let files = || fs::read_dir(&one).unwrap().map(|it| it.unwrap());
    let bytes: u64 = files().map(|it| it.metadata().unwrap().len()).sum();
    // There is room for the first, and not for two.
    let limit = (bytes + bytes / 2).to_string();
    let limited = [
        "--quarantine",
        one.to_str().unwrap(),
        "--quarantine-bytes",
        &limit,
    ];
    let full = relay(&limited).code(74);
    let told = String::from_utf8(full.get_output().stderr.clone()).unwrap();
    assert!(told.contains(&format!("its limit of {limit}")), "{told}");
    assert_eq!(files().count(), 2);
    let summary: Value = serde_json::from_slice(&full.get_output().stdout).unwrap();
    adds_up(&summary);
    // Chunks that were given back come again once there is room.
    let two = path("two");
    let rest = relay(&["--quarantine", two.to_str().unwrap()]).code(65);
    let summary: Value = serde_json::from_slice(&rest.get_output().stdout).unwrap();
    assert_eq!(summary["quarantined"], 2, "{summary}");
    // A medium limits itself.
    let medium = file_uri(&path("medium"));
    let wrong = relay(&["--quarantine", &medium, "--quarantine-bytes", "1MiB"]).code(78);
    let told = String::from_utf8(wrong.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains("--quarantine-bytes 1048576 is the limit of a folder"),
        "{told}"
    );
}
