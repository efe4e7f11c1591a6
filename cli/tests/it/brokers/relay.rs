//! Relays between applications and brokers: nothing is lost, altered or out of order if a process
//! is away, killed or asked to end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use baler_connector_kafka::EmbeddedCluster;
use baler_connector_testkit::faults::RabbitMqNode;
use serde_json::{Value, json};

use crate::observability::{get, sum};
use crate::real_log::expected;
use crate::relay::{RelayProcess, adds_up, generate, receive};
use crate::support::{Background, file_uri, json as run_json, json_lines, real_log, wait_for};

/// The address to which applications send.
const LOCAL: &str = "tcp://127.0.0.1:0";

/// Sends the log, 20 records a chunk.
fn send_log(to: &str) {
    let log = real_log();
    let mut send = vec!["send", "--from", &log, "--to", to, "--format", "json"];
    send.extend(["--chunk-records", "20"]);
    assert_eq!(run_json(&send)["delivered"], expected().len());
}

/// Asserts that the records from here are the log, in its order.
fn is_the_log(from: &str, folder: &Path) {
    let text = receive_count(from, folder, expected().len()).succeed_with_text();
    let mut records = json_lines(&text);
    for record in &mut records {
        record.as_object_mut().unwrap().remove("identity").unwrap();
    }
    assert!(records == expected(), "{from} has other records");
}

/// A receiver that ends after a number of records.
pub(super) struct Counting {
    process: Background,
    output: std::path::PathBuf,
}

impl Counting {
    /// Whether a record has arrived.
    pub(super) fn has_output(&self) -> bool {
        fs::metadata(&self.output).is_ok_and(|file| file.len() > 0)
    }

    /// Waits for an end with code 0. Returns its output.
    pub(super) fn succeed_with_text(self) -> String {
        self.process.succeed();
        fs::read_to_string(self.output).unwrap()
    }
}

/// Starts a receiver that ends after this number of records.
pub(super) fn receive_count(from: &str, folder: &Path, records: usize) -> Counting {
    fs::create_dir_all(folder).unwrap();
    let output = folder.join("records.jsonl");
    let number = records.to_string();
    let mut args = vec!["receive", "--from", from, "--format", "json", "--identity"];
    args.extend(["--count", &number, "--output", output.to_str().unwrap()]);
    Counting {
        process: Background::start(&args),
        output,
    }
}

/// Epoch and lane; sequence and index.
type Lanes = BTreeMap<String, Vec<(u64, u64)>>;

/// Returns the identities of the records, in order of arrival.
fn identities(text: &str) -> Lanes {
    let mut lanes = Lanes::new();
    for line in json_lines(text) {
        let identity = &line["identity"];
        let lane = format!("{}/{}", identity["epoch"], identity["lane"]);
        let number = |name: &str| identity[name].as_u64().unwrap();
        let place = (number("sequence"), number("index"));
        lanes.entry(lane).or_default().push(place);
    }
    lanes
}

/// Asserts this number of records in chunks of 100, each once, in the order of its lane.
pub(super) fn is_exact(text: &str, records: u64) {
    let lanes = identities(text);
    let mut total = 0;
    for (lane, places) in &lanes {
        assert!(
            places.is_sorted_by(|a, b| a < b),
            "{lane} is out of order, or has copies"
        );
        let sequences: BTreeSet<u64> = places.iter().map(|place| place.0).collect();
        assert!(
            sequences.iter().copied().eq(0..sequences.len() as u64),
            "{lane} has gaps"
        );
        total += places.len() as u64;
    }
    assert_eq!(total, records);
}

#[test]
fn the_log_passes_from_tcp_through_rabbitmq_to_kafka_and_on_into_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let node = RabbitMqNode::start().unwrap();
    let cluster = EmbeddedCluster::start("log", 2).unwrap();
    let queue = node.uri("?queue=log");
    let topic = format!("kafka://{}/log", cluster.bootstrap_servers());
    let second = {
        let mut args = vec!["relay", "--from", &queue, "--to", &topic];
        args.extend(["--format", "json"]);
        Background::start(&args)
    };
    let first = RelayProcess::start(LOCAL, &queue, &path("first"), &[]);
    send_log(&first.uri);
    is_the_log(&format!("{topic}?group.id=first"), &path("received"));
    let (summary, code) = first.end();
    assert_eq!((code, &summary["identities_made"]), (0, &json!(0)));
    let chunks = summary["forwarded"].as_u64().unwrap();
    // Its confirmations come after the records that the receiver has seen.
    second.signal("TERM");
    let summary: Value = serde_json::from_str(&second.succeed()).unwrap();
    adds_up(&summary);
    assert!(
        summary["forwarded"].as_u64() >= Some(chunks - 1),
        "{summary}"
    );

    // Another group: a relay's, to its own folder.
    let to = file_uri(&path("to"));
    let (from, number) = (format!("{topic}?group.id=second"), (chunks - 1).to_string());
    let mut third = vec!["relay", "--from", &from, "--to", &to, "--format", "json"];
    third.extend(["--count-chunks", &number]);
    let summary = run_json(&third);
    adds_up(&summary);
    assert_eq!(summary["forwarded"], chunks - 1);
    is_the_log(&to, &path("last"));
}

#[test]
fn the_log_passes_from_tcp_to_kafka() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = EmbeddedCluster::start("log", 4).unwrap();
    let topic = format!("kafka://{}/log", cluster.bootstrap_servers());
    let relay = RelayProcess::start(LOCAL, &topic, folder.path(), &[]);
    send_log(&relay.uri);
    let (summary, code) = relay.end();
    assert_eq!((code, &summary["given_back"]), (0, &json!(0)), "{summary}");
    is_the_log(&topic, &folder.path().join("received"));
}

#[test]
fn the_log_passes_from_a_folder_to_rabbitmq() {
    let folder = tempfile::tempdir().unwrap();
    let node = RabbitMqNode::start().unwrap();
    let from = file_uri(&folder.path().join("from"));
    send_log(&from);
    let queue = node.uri("?queue=log");
    let summary = run_json(&["relay", "--from", &from, "--to", &queue, "--format", "json"]);
    adds_up(&summary);
    assert_eq!(summary["ended_by"], "end");
    assert_eq!(summary["forwarded"], summary["received"]);
    is_the_log(&queue, &folder.path().join("received"));
}

#[test]
fn applications_finish_while_rabbitmq_is_down_and_everything_arrives_once_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let node = RabbitMqNode::prepare().unwrap();
    let queue = node.uri("?queue=records");
    let (spool, port) = (path("spool"), path("metrics-port"));
    let mut flags = vec!["--spool", spool.to_str().unwrap(), "--spool-after", "50ms"];
    flags.extend(["--metrics", "127.0.0.1:0", "--metrics-port-file"]);
    flags.push(port.to_str().unwrap());
    let relay = RelayProcess::start(LOCAL, &queue, folder.path(), &flags);
    let report = generate(&relay.uri, 20_000);
    assert_eq!(
        (&report["delivered"], &report["dropped"]),
        (&json!(20_000), &json!({}))
    );
    // The spool stands in for the broker: the relay is ready, but degraded.
    let metrics = wait_for("an address", || fs::read_to_string(&port).ok());
    let (status, body) = get(&metrics, "/readyz");
    let health: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &health["status"]),
        (200, &json!("degraded")),
        "{body}"
    );
    let checks = health["checks"].as_array().unwrap();
    let check = checks.iter().find(|it| it["name"] == "spool").unwrap();
    assert_eq!(check["route"], "away", "{body}");
    assert!(check["waiting_chunks"].as_u64() >= Some(200), "{body}");
    let (_, text) = get(&metrics, "/metrics");
    assert!(
        text.contains("baler_spool_route{route=\"away\"} 1"),
        "{text}"
    );

    node.restart().unwrap();
    let text = receive_count(&queue, &path("received"), 20_000).succeed_with_text();
    is_exact(&text, 20_000);
    wait_for("the relay to be well", || {
        let (_, body) = get(&metrics, "/readyz");
        let health: Value = serde_json::from_str(&body).unwrap();
        (health["status"] == "ok").then_some(())
    });
    let (_, text) = get(&metrics, "/metrics");
    assert!(
        text.contains("baler_spool_route{route=\"direct\"} 1"),
        "{text}"
    );
    assert_eq!(sum(&text, "baler_spool_waiting_chunks"), 0.0);
    let (summary, code) = relay.end();
    assert_eq!((code, &summary["given_back"]), (0, &json!(0)), "{summary}");
    assert!(summary["spooled"].as_u64() >= Some(200), "{summary}");
}

#[test]
fn nothing_is_lost_when_a_relay_to_rabbitmq_is_killed_in_mid_stream() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let node = RabbitMqNode::start().unwrap();
    let queue = node.uri("?queue=records");
    let receiver = receive_count(&queue, &path("received"), 100_000);
    let first = RelayProcess::start(LOCAL, &queue, folder.path(), &[]);
    let uri = first.uri.clone();
    let mut args = vec!["generate", "--to", &uri, "--records", "100000"];
    args.extend(["--chunk-records", "100", "--format", "json"]);
    let sender = Background::start(&args);
    wait_for("a part of the records", || {
        let written = fs::metadata(&receiver.output).map_or(0, |file| file.len());
        (written > 300_000).then_some(())
    });
    first.process.signal("KILL");
    first.process.end();
    let second = RelayProcess::start(&uri, &queue, folder.path(), &[]);
    let report: Value = serde_json::from_str(&sender.succeed()).unwrap();
    assert_eq!(report["delivered"], 100_000);
    let text = receiver.succeed_with_text();
    is_exact(&text, 100_000);
    let (summary, code) = second.end();
    assert!(
        summary["forwarded"].as_u64() > Some(0),
        "not in mid-stream: {summary}"
    );
    assert_eq!((code, &summary["given_back"]), (0, &json!(0)), "{summary}");
    // Only copies may be left.
    receive(&queue, &path("rest"));
    let rest = fs::read_to_string(path("rest").join("records.jsonl")).unwrap();
    let known = identities(&text);
    for (lane, places) in identities(&rest) {
        let known: BTreeSet<_> = known[&lane].iter().collect();
        assert!(places.iter().all(|place| known.contains(place)), "{lane}");
    }
}
