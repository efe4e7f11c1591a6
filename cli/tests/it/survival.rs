//! Receivers that are killed, programs that are asked to end, and chunks that are looked at.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;

use crate::support::{Background, Receiver, file_uri, json_lines, output, wait_for};

/// How many records go through the killed receiver; the variable asks for another number.
fn records() -> u64 {
    match std::env::var("BALER_TEST_KILL_RECORDS") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => 200_000,
    }
}

/// Who a record is: its lane, its chunk, its position there.
type Identity = (String, u64, u64);

/// Counts each identity in what a receiver wrote; a last line that was cut is none.
fn count(text: &str, counts: &mut HashMap<Identity, u64>) {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    for line in text.get(..whole).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let identity = &record["identity"];
        let lane = format!(
            "{}/{}/{}",
            identity["producer"].as_str().unwrap(),
            identity["epoch"].as_str().unwrap(),
            identity["lane"]
        );
        let key = (
            lane,
            identity["sequence"].as_u64().unwrap(),
            identity["index"].as_u64().unwrap(),
        );
        *counts.entry(key).or_default() += 1;
    }
}

#[test]
fn nothing_is_lost_when_a_receiver_is_killed_and_restarted() {
    let wanted = records();
    let folder = tempfile::tempdir().unwrap();
    let first = Receiver::start(&folder.path().join("first"), &["--identity"]);
    let (uri, number) = (first.uri.clone(), wanted.to_string());
    let mut sender = Background::start(&[
        "generate",
        "--to",
        &uri,
        "--records",
        &number,
        "--threads",
        "2",
        "--format",
        "json",
    ]);
    // In the middle: a good part has arrived, and the sender is not done.
    let written = || fs::metadata(&first.output).map_or(0, |it| it.len());
    wait_for("a third of the records", || {
        (written() > wanted * 350 / 3).then_some(())
    });
    assert!(
        sender.is_running(),
        "the sender was done before the receiver was killed"
    );
    first.process.signal("KILL");
    let (status, _, _) = first.process.end();
    assert!(!status.success());

    let second = Receiver::at(&uri, &folder.path().join("second"), &["--identity"]);
    let report: Value = serde_json::from_str(&sender.succeed()).unwrap();
    assert_eq!(report["emitted"], wanted);
    assert_eq!(report["delivered"], wanted);
    second.process.signal("TERM");
    let (after, summary) = second.succeed();
    assert_eq!(summary["ended_by"], "signal");

    let mut counts = HashMap::new();
    count(&fs::read_to_string(&first.output).unwrap(), &mut counts);
    let before_kill: u64 = counts.values().sum();
    count(&after, &mut counts);
    let all: u64 = counts.values().sum();
    assert!(
        0 < before_kill && before_kill < wanted,
        "{before_kill} of {wanted}"
    );
    assert!(all > before_kill, "the second receiver got nothing");
    // The set is exact: as many as were emitted, each chunk without a hole, no chunk missing.
    let distinct = u64::try_from(counts.len()).unwrap();
    let duplicates = all - distinct;
    assert_eq!(
        distinct, wanted,
        "{all} lines, {duplicates} of them duplicates"
    );
    let mut chunks: HashMap<(String, u64), (u64, u64)> = HashMap::new();
    for (lane, sequence, index) in counts.into_keys() {
        let (count, highest) = chunks.entry((lane, sequence)).or_default();
        *count += 1;
        *highest = index.max(*highest);
    }
    assert!(
        chunks
            .values()
            .all(|(count, highest)| *count == highest + 1)
    );
    let sequences = chunks.keys().map(|(_, sequence)| *sequence);
    assert_eq!(
        sequences.max().unwrap() + 1,
        u64::try_from(chunks.len()).unwrap()
    );
}

#[test]
fn sigterm_drains_a_sender_and_the_figures_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(folder.path(), &[]);
    let sender = Background::start(&[
        "generate",
        "--to",
        &receiver.uri,
        "--records",
        "100M",
        "--rate",
        "5000",
        "--format",
        "json",
    ]);
    wait_for("the first records", || {
        fs::metadata(&receiver.output)
            .ok()
            .filter(|it| it.len() > 10_000)
    });
    sender.signal("TERM");
    let (status, stdout, stderr) = sender.end();
    assert_eq!(status.code(), Some(75), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let delivered = report["delivered"].as_u64().unwrap();
    assert!(delivered > 0);
    assert_eq!(report["emitted"], delivered, "{report}");
    receiver.process.signal("TERM");
    let (records, summary) = receiver.succeed();
    assert_eq!(
        u64::try_from(json_lines(&records).len()).unwrap(),
        delivered
    );
    assert_eq!(summary["records"], delivered);
    assert_eq!(summary["complete_lanes"], 1);
}

#[test]
fn a_second_signal_ends_at_once() {
    // Nobody listens, and there is a minute to drain.
    let mut sender = Background::start(&[
        "generate",
        "--to",
        "tcp://127.0.0.1:1",
        "--records",
        "100M",
        "--shutdown-timeout",
        "1m",
        "--give-up",
        "1m",
        "-vv",
    ]);
    // The handlers stand before the first connection is tried.
    sender.wait_for_message("disconnected");
    sender.signal("TERM");
    sender.wait_for_message("asked to end");
    sender.signal("TERM");
    let (status, _, _) = sender.end();
    assert_eq!(status.code(), Some(143));
}

#[test]
fn inspecting_a_live_endpoint_consumes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    let inspect = Background::start(&[
        "inspect",
        "tcp://127.0.0.1:0",
        "--count",
        "2",
        "--format",
        "json",
        "--port-file",
        port.to_str().unwrap(),
    ]);
    let address = wait_for("the address", || fs::read_to_string(&port).ok());
    let uri = format!("tcp://{}", address.trim());
    let sender = Background::start(&[
        "generate",
        "--to",
        &uri,
        "--records",
        "5000",
        "--chunk-records",
        "500",
        "--format",
        "json",
    ]);
    let document: Value = serde_json::from_str(&inspect.succeed()).unwrap();
    assert_eq!(document["chunks"].as_array().unwrap().len(), 2);
    assert_eq!(document["chunks"][0]["records"], 500);
    let receiver = Receiver::at(&uri, folder.path(), &["--count", "5000"]);
    let report: Value = serde_json::from_str(&sender.succeed()).unwrap();
    assert_eq!(report["delivered"], 5_000);
    let (records, summary) = receiver.succeed();
    assert_eq!(json_lines(&records).len(), 5_000);
    assert_eq!(summary["gaps"], serde_json::json!([]));
}

#[test]
fn a_count_inside_a_chunk_leaves_the_chunk_to_the_next_receiver() {
    let folder = tempfile::tempdir().unwrap();
    let first = Receiver::start(&folder.path().join("first"), &["--count", "750"]);
    let uri = first.uri.clone();
    let sender = Background::start(&[
        "generate",
        "--to",
        &uri,
        "--records",
        "1500",
        "--chunk-records",
        "500",
        "--format",
        "json",
    ]);
    let (before, summary) = first.succeed();
    assert_eq!(json_lines(&before).len(), 750);
    assert!(summary["given_back"].as_u64().unwrap() >= 1);
    let second = Receiver::at(&uri, &folder.path().join("second"), &["--count", "1000"]);
    sender.succeed();
    let (after, _) = second.succeed();
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    assert_eq!(
        before[500..],
        after[..250],
        "the cut chunk comes again, whole"
    );
    assert_eq!(after.len(), 1_000);
}

#[test]
fn a_follower_of_a_folder_sees_what_is_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let uri = file_uri(&folder.path().join("chunks"));
    let follower = Background::start(&[
        "receive", "--from", &uri, "--follow", "--count", "300", "--format", "json",
    ]);
    for seed in ["1", "2", "3"] {
        output(&["generate", "--to", &uri, "--records", "100", "--seed", seed]);
    }
    assert_eq!(json_lines(&follower.succeed()).len(), 300);
}

#[test]
fn a_receiver_ends_when_nothing_comes() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(folder.path(), &["--idle-timeout", "2s"]);
    output(&["generate", "--to", &receiver.uri, "--records", "1000"]);
    let (records, summary) = receiver.succeed();
    assert_eq!(json_lines(&records).len(), 1_000);
    assert_eq!(summary["ended_by"], "idle_timeout");
}
