//! Receivers that are killed, programs that are asked to end, and chunks that are looked at.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::observability::{get, sum};
use crate::support::{Background, Receiver, baler, file_uri, json, json_lines, output, wait_for};

/// How many records go through the receiver that is killed, in chunks so small that the lines of
/// several wait in the sink's buffer: one acknowledged too early would be missed.
const KILL_RECORDS: u64 = 300_000;

/// The fields that are read of a line: the identity of the record.
#[derive(serde::Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    identity: Identity<'a>,
}

#[derive(serde::Deserialize)]
struct Identity<'a> {
    producer: &'a str,
    epoch: &'a str,
    lane: u32,
    sequence: u64,
    index: usize,
}

/// How often each record was seen: by lane, by chunk, by position in the chunk.
#[derive(Default)]
struct Seen {
    lanes: HashMap<String, HashMap<u64, Vec<u32>>>,
    lines: u64,
}

impl Seen {
    /// Adds the output of a receiver. A last line that was cut does not count.
    fn add(&mut self, path: &Path) {
        let mut lane_name = String::new();
        let mut input = BufReader::new(fs::File::open(path).unwrap());
        let mut text = String::new();
        while input.read_line(&mut text).unwrap() > 0 && text.ends_with('\n') {
            let Line { identity } = serde_json::from_str(&text).unwrap();
            lane_name.clear();
            let (producer, epoch, lane) = (identity.producer, identity.epoch, identity.lane);
            write!(lane_name, "{producer}/{epoch}/{lane}").unwrap();
            if !self.lanes.contains_key(&lane_name) {
                self.lanes.insert(lane_name.clone(), HashMap::new());
            }
            let lane = self.lanes.get_mut(&lane_name).unwrap();
            let chunk = lane.entry(identity.sequence).or_default();
            chunk.resize(chunk.len().max(identity.index + 1), 0);
            chunk[identity.index] += 1;
            self.lines += 1;
            text.clear();
        }
    }

    /// Returns the number of different records seen.
    fn distinct(&self) -> u64 {
        let chunks = self.lanes.values().flat_map(HashMap::values);
        let seen = chunks.flatten().filter(|times| **times > 0).count();
        u64::try_from(seen).unwrap()
    }
}

#[test]
fn nothing_is_lost_when_a_receiver_is_killed_and_restarted() {
    let wanted = KILL_RECORDS;
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
        "--chunk-records",
        "100",
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
    let second_output = second.output.clone();
    let summary = second.end();
    assert_eq!(summary["ended_by"], "signal");

    let mut seen = Seen::default();
    seen.add(&first.output);
    let before_kill = seen.lines;
    assert!(
        0 < before_kill && before_kill < wanted,
        "{before_kill} of {wanted}"
    );
    seen.add(&second_output);
    assert_eq!(summary["records"], seen.lines - before_kill);
    assert!(seen.lines > before_kill, "the second receiver got nothing");
    // The set is exact: as many as were emitted, and neither a chunk nor a record in one missing.
    let duplicates = seen.lines - seen.distinct();
    assert_eq!(seen.distinct(), wanted, "beside {duplicates} duplicates");
    assert_eq!(seen.lanes.len(), 1, "one producer, one life, one lane");
    for (lane, chunks) in &seen.lanes {
        let chunk_count = u64::try_from(chunks.len()).unwrap();
        assert_eq!(chunks.keys().max().unwrap() + 1, chunk_count, "{lane}");
        let whole = |chunk: &Vec<u32>| chunk.iter().all(|times| *times > 0);
        assert!(chunks.values().all(whole), "a record is missing in a chunk");
    }
    // Only chunks that the first receiver had not yet acknowledged came twice: whole chunks, a
    // window of 64 at most.
    assert!(duplicates <= 64 * 100, "{duplicates} duplicates");
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

#[test]
fn what_could_not_be_sent_stays_with_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let (made, to) = (file_uri(&from), file_uri(&to));
    output(&["generate", "--to", &made, "--records", "2000"]);
    let from = format!("{made}?consumer=relay");
    let lost = [
        "send",
        "--from",
        &from,
        "--to",
        "tcp://127.0.0.1:1",
        "--give-up",
        "300ms",
    ];
    baler(&lost).code(69);
    let again = ["send", "--from", &from, "--to", &to, "--format", "json"];
    assert_eq!(json(&again)["delivered"], 2_000);
    assert_eq!(json(&again)["delivered"], 0, "now the consumer has them");
    let received = output(&["receive", "--from", &to, "--format", "json"]);
    assert_eq!(json_lines(&received).len(), 2_000);
}

#[test]
fn a_sender_that_cannot_drain_ends_at_its_deadline_and_accounts() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    let sender = Background::start(&[
        "generate",
        "--to",
        "tcp://127.0.0.1:1",
        "--records",
        "100M",
        "--shutdown-timeout",
        "1s",
        "--give-up",
        "1h",
        "--format",
        "json",
        "--metrics",
        "127.0.0.1:0",
        "--metrics-port-file",
        port.to_str().unwrap(),
    ]);
    let address = wait_for("an address", || fs::read_to_string(&port).ok());
    wait_for("records to be emitted", || {
        let (_, text) = get(&address, "/metrics");
        (sum(&text, "baler_records_emitted_total") > 0.0).then_some(())
    });
    sender.signal("TERM");
    let asked = Instant::now();
    let (status, stdout, stderr) = sender.end();
    assert_eq!(status.code(), Some(75), "{stderr}");
    assert!(asked.elapsed() < Duration::from_secs(20));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let dropped = report["dropped"].as_object().unwrap().values();
    let dropped: u64 = dropped.map(|it| it.as_u64().unwrap()).sum();
    assert!(dropped > 0);
    assert_eq!(report["emitted"], dropped, "{report}");
}
