//! SIGTERM under load, with the broker up, frozen and killed: the end comes before the deadline, and
//! the last figures add up exactly.

#[cfg(feature = "amqp")]
mod amqp;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use baler_connector_testkit::faults::RabbitMqNode;
use serde_json::Value;

use crate::relay::{self, RelayProcess};
use crate::support::{Background, Receiver, file_uri, output, wait_for};

/// The deadline of the command. `SLACK` is the time that a busy machine may take beside it to start
/// threads, write figures and reap the process.
const DEADLINE: Duration = Duration::from_secs(3);
const SLACK: Duration = Duration::from_secs(2);

/// The state of the other side when the signal comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broker {
    Up,
    /// Its processes are stopped: connections stay and nothing answers.
    Frozen,
    Killed,
}

pub(crate) const STATES: [Broker; 3] = [Broker::Up, Broker::Frozen, Broker::Killed];

impl Broker {
    /// The deadline of the other side. A broker that works confirms everything, even on a busy machine.
    fn deadline(self) -> Duration {
        match self {
            Self::Up => DEADLINE * 5,
            Self::Frozen | Self::Killed => DEADLINE,
        }
    }

    /// The deadline as a flag has it.
    pub(crate) fn deadline_text(self) -> String {
        format!("{}s", self.deadline().as_secs())
    }
}

fn signal(pid: &str, name: &str) {
    let status = Command::new("kill").args(["-s", name, pid]).status();
    assert!(status.unwrap().success());
}

/// Lets a stopped process go on, so that it can end.
pub(crate) struct Frozen(String);

impl Drop for Frozen {
    fn drop(&mut self) {
        Command::new("kill")
            .args(["-s", "CONT", &self.0])
            .status()
            .ok();
    }
}

/// Something that takes records, and can be frozen or killed.
pub(crate) trait Other {
    fn pid(&self) -> String;

    fn kill(&self);

    /// Brings it into the state. Dropping the returned value brings it back.
    fn set(&self, state: Broker) -> Option<Frozen> {
        match state {
            Broker::Up => None,
            Broker::Frozen => {
                let frozen = Frozen(self.pid());
                signal(&frozen.0, "STOP");
                Some(frozen)
            }
            Broker::Killed => {
                self.kill();
                None
            }
        }
    }
}

/// `baler receive`, which listens or has a cluster inside.
impl Other for Receiver {
    fn pid(&self) -> String {
        self.process.pid()
    }

    fn kill(&self) {
        self.process.signal("KILL");
    }
}

impl Other for RabbitMqNode {
    fn pid(&self) -> String {
        Self::pid(self).unwrap()
    }

    fn kill(&self) {
        Self::kill(self).unwrap();
    }
}

fn sum(counts: &Value) -> u64 {
    let counts = counts.as_object().unwrap().values();
    counts.map(|it| it.as_u64().unwrap()).sum()
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// Sends SIGTERM. Returns the exit code and the figures, once the process ended in time.
pub(crate) fn terminate(
    process: Background,
    what: &str,
    state: Broker,
) -> (Option<i32>, Value, Duration) {
    process.signal("TERM");
    let asked = Instant::now();
    let (status, stdout, stderr) = process.end();
    let took = asked.elapsed();
    assert!(took < state.deadline() + SLACK, "{what}: {took:?}");
    let report = serde_json::from_str(&stdout);
    let report: Value = report.unwrap_or_else(|error| panic!("{what}: {error}: {stdout}{stderr}"));
    println!("{what}: ended after {} ms", took.as_millis());
    (status.code(), report, took)
}

/// Asserts that the figures of a command that sends add up.
fn adds_up(report: &Value, what: &str) {
    let emitted = number(&report["emitted"]);
    let accounted =
        number(&report["delivered"]) + number(&report["spooled"]) + sum(&report["dropped"]);
    assert!(emitted > 0, "{what}: no load: {report}");
    assert_eq!(emitted, accounted, "{what}: {report}");
}

/// Starts a sender that would go on for ever.
pub(crate) fn generate_for_ever(to: &str, state: Broker) -> Background {
    Background::start(&[
        "generate",
        "--to",
        to,
        "--records",
        "1G",
        "--rate",
        "20k",
        "--chunk-records",
        "100",
        "--shutdown-timeout",
        &state.deadline_text(),
        "--give-up",
        "1h",
        "--format",
        "json",
    ])
}

/// Waits until records arrive: the load is on.
fn wait_for_records(output: &Path) {
    wait_for("records", || {
        let written = fs::metadata(output).map_or(0, |file| file.len());
        (written > 0).then_some(())
    });
}

fn send_to(receiver_uri: &str, to: impl Fn(&Receiver) -> String, state: Broker) {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::at(receiver_uri, folder.path(), &[]);
    let to = to(&receiver);
    let sender = generate_for_ever(&to, state);
    wait_for_records(&receiver.output);
    let frozen = receiver.set(state);
    let what = format!("generate to {to}, {state:?}");
    let (code, report, _) = terminate(sender, &what, state);
    // It did not emit all that it was asked for.
    assert_eq!(code, Some(75), "{what}: {report}");
    adds_up(&report, &what);
    drop(frozen);
    if state == Broker::Up {
        assert_eq!(sum(&report["dropped"]), 0, "{what}: {report}");
        // And the receiver, asked to end, has all of it.
        let delivered = number(&report["delivered"]);
        wait_for("the records delivered", || {
            let text = fs::read_to_string(&receiver.output).unwrap();
            (text.lines().count() as u64 >= delivered).then_some(())
        });
        receiver.process.signal("TERM");
        let (records, summary) = receiver.succeed();
        assert_eq!(records.lines().count() as u64, delivered);
        assert_eq!(summary["records"], delivered);
        assert_eq!(summary["ended_by"], "signal");
        assert_eq!(
            number(&summary["chunks"]),
            number(&summary["acknowledged"]) + number(&summary["given_back"])
        );
    }
}

#[test]
fn a_sender_over_tcp_ends_in_time_and_adds_up() {
    for state in STATES {
        send_to("tcp://127.0.0.1:0", |it| it.uri.clone(), state);
    }
}

#[test]
fn a_relay_over_tcp_ends_in_time_and_adds_up() {
    for state in STATES {
        let folder = tempfile::tempdir().unwrap();
        let receiver = Receiver::start(folder.path(), &[]);
        let flags = ["--shutdown-timeout", &state.deadline_text()];
        let source = "tcp://127.0.0.1:0";
        let relay = RelayProcess::start(source, &receiver.uri, folder.path(), &flags);
        let _sender = generate_for_ever(&relay.uri, state);
        wait_for_records(&receiver.output);
        let frozen = receiver.set(state);
        let what = format!("relay to tcp, {state:?}");
        let (code, summary, _) = terminate(relay.process, &what, state);
        relay::adds_up(&summary);
        drop(frozen);
        assert_eq!(summary["ended_by"], "signal", "{what}: {summary}");
        let given_back = number(&summary["given_back"]);
        let expected = if given_back > 0 { 75 } else { 0 };
        assert_eq!(code, Some(expected), "{what}: {summary}");
        if state == Broker::Up {
            assert_eq!(given_back, 0, "{what}: {summary}");
        }
    }
}

#[cfg(feature = "kafka")]
#[test]
fn a_sender_to_kafka_ends_in_time_and_adds_up() {
    for state in STATES {
        let to = |it: &Receiver| it.uri.replace("tcp://", "kafka://") + "/records";
        send_to("kafka+mock:records?partitions=2", to, state);
    }
}

/// `send` from a folder: the settled chunks are the delivered ones, and the rest is there for the
/// next run.
#[test]
fn a_forwarder_leaves_at_its_source_what_it_could_not_deliver() {
    let folder = tempfile::tempdir().unwrap();
    let chunks = file_uri(&folder.path().join("chunks"));
    output(&[
        "generate",
        "--to",
        &chunks,
        "--records",
        "200k",
        "--chunk-records",
        "100",
    ]);
    let from = format!("{chunks}?consumer=forwarder");
    for state in [Broker::Frozen, Broker::Killed] {
        let receiver = Receiver::start(&folder.path().join(format!("{state:?}")), &[]);
        let to = receiver.uri.clone();
        let sender = Background::start(&[
            "send",
            "--from",
            &from,
            "--to",
            &to,
            "--shutdown-timeout",
            "3s",
            "--give-up",
            "1h",
            "--format",
            "json",
        ]);
        wait_for_records(&receiver.output);
        let frozen = receiver.set(state);
        let what = format!("send to {to}, {state:?}");
        let (_, report, _) = terminate(sender, &what, state);
        adds_up(&report, &what);
        drop(frozen);
    }
    let last = folder.path().join("last");
    let rest = crate::support::json(&[
        "send",
        "--from",
        &from,
        "--to",
        &file_uri(&last),
        "--format",
        "json",
    ]);
    assert_eq!(rest["delivered"], rest["emitted"]);
}

/// Runs a receiver under load, with its senders or its broker in each state. `start` makes it write
/// to a folder, and returns the address for senders.
fn receive_ends(from: &str, start: impl Fn(&Path) -> (Background, String)) {
    let folder = tempfile::tempdir().unwrap();
    for frozen in [false, true] {
        let path = folder.path().join(frozen.to_string());
        let (receiver, to) = start(&path);
        let sender = generate_for_ever(&to, Broker::Up);
        wait_for_records(&path.join("records.jsonl"));
        let held = frozen.then(|| {
            sender.signal("STOP");
            Frozen(sender.pid())
        });
        receiver.signal("TERM");
        let asked = Instant::now();
        let (status, _, stderr) = receiver.end();
        let took = asked.elapsed();
        assert!(
            took < DEADLINE + SLACK,
            "receive from {from}, frozen {frozen}: {took:?}"
        );
        assert!(status.success(), "{status}: {stderr}");
        let records = fs::read_to_string(path.join("records.jsonl")).unwrap();
        let summary = fs::read_to_string(path.join("summary.json")).unwrap();
        let summary = serde_json::from_str(&summary).unwrap();
        println!(
            "receive from {from}, sender frozen: {frozen}: ended after {} ms",
            took.as_millis()
        );
        received_adds_up(&records, &summary);
        drop(held);
    }
}

fn received_adds_up(records: &str, summary: &Value) {
    assert_eq!(summary["ended_by"], "signal");
    assert_eq!(
        summary["records"],
        records.lines().count() as u64,
        "{summary}"
    );
    let settled = number(&summary["acknowledged"]) + number(&summary["given_back"]);
    assert_eq!(number(&summary["chunks"]), settled, "{summary}");
}

#[test]
fn a_receiver_over_tcp_ends_in_time_and_adds_up() {
    receive_ends("tcp", |folder| {
        let flags = ["--shutdown-timeout", "3s", "--workers", "2"];
        let receiver = Receiver::start(folder, &flags);
        (receiver.process, receiver.uri)
    });
}

#[cfg(feature = "kafka")]
#[test]
fn a_receiver_from_kafka_ends_in_time_and_adds_up() {
    let cluster = baler_connector_kafka::EmbeddedCluster::start("records", 2).unwrap();
    let uri = format!("kafka://{}/records", cluster.bootstrap_servers());
    receive_ends("kafka", |folder| {
        let name = folder.file_name().unwrap().to_str().unwrap();
        // The mock refuses commits while one of two members leaves; Apache Kafka takes them.
        let (receiver, _) = receive_queue(&format!("{uri}?group.id={name}"), folder, "1");
        (receiver, uri.clone())
    });
}

/// Starts `baler receive` of a queue or topic in the background.
#[cfg(any(feature = "amqp", feature = "kafka"))]
fn receive_queue(uri: &str, folder: &Path, workers: &str) -> (Background, [std::path::PathBuf; 2]) {
    fs::create_dir_all(folder).unwrap();
    let files = [folder.join("records.jsonl"), folder.join("summary.json")];
    let process = Background::start(&[
        "receive",
        "--from",
        uri,
        "--format",
        "json",
        "--workers",
        workers,
        "--shutdown-timeout",
        "3s",
        "--output",
        files[0].to_str().unwrap(),
        "--summary",
        files[1].to_str().unwrap(),
    ]);
    (process, files)
}
