//! A topic of a real cluster that changes under a sender. The sender says so by default, in its
//! summary, in a metric and by its exit code.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::real_log::fresh_name;
use crate::support::Background;

/// The numbers of Kafka's requests, and versions that brokers know since 2.3.
const CREATE_TOPICS: [i16; 2] = [19, 2];
const DELETE_TOPICS: [i16; 2] = [20, 1];
const CREATE_PARTITIONS: [i16; 2] = [37, 0];
const ALTER_CONFIGS: [i16; 2] = [44, 0];

/// The end of such requests: the broker's time in milliseconds, and that it is no trial.
const IN_TIME: [u8; 5] = [0, 0, 0x75, 0x30, 0];

pub(super) fn servers() -> String {
    std::env::var("KAFKA_BOOTSTRAP").expect("KAFKA_BOOTSTRAP=host:port")
}

pub(super) fn string(text: &str) -> Vec<u8> {
    let length = i16::try_from(text.len()).unwrap();
    [&length.to_be_bytes(), text.as_bytes()].concat()
}

/// Sends a request with one item. The effect is checked by the program.
pub(super) fn ask(api: [i16; 2], item: &[u8], end: &[u8]) {
    request(api, &[&1_i32.to_be_bytes(), item, end].concat());
}

/// Sends a request, and waits for the answer.
pub(super) fn request([key, version]: [i16; 2], body: &[u8]) {
    let head = [key.to_be_bytes(), version.to_be_bytes()].concat();
    let number = 1_i32.to_be_bytes();
    let request = [&head, &number[..], &string("test"), body].concat();
    let length = i32::try_from(request.len()).unwrap();
    let mut stream = TcpStream::connect(servers()).unwrap();
    stream.write_all(&length.to_be_bytes()).unwrap();
    stream.write_all(&request).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
    stream.read_exact(&mut answer).unwrap();
}

pub(super) fn delete(topic: &str) {
    ask(DELETE_TOPICS, &string(topic), &IN_TIME[..4]);
}

/// Creates a topic of one partition.
pub(super) fn create(topic: &str) {
    let shape = [0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    ask(
        CREATE_TOPICS,
        &[&string(topic)[..], &shape].concat(),
        &IN_TIME,
    );
}

fn set(topic: &str, name: &str, value: &str) {
    let count = 1_i32.to_be_bytes();
    let setting = [&string(name)[..], &[0], &string(value)].concat();
    let item = [&[2][..], &string(topic), &count, &setting].concat();
    ask(ALTER_CONFIGS, &item, &[0]);
}

/// A sender under which a topic changes.
struct Sender {
    topic: String,
    folder: tempfile::TempDir,
    process: Background,
}

/// The outcome of a sender or receiver.
pub(super) struct Outcome {
    pub(super) code: i32,
    pub(super) told: String,
    pub(super) report: Value,
    pub(super) metrics: String,
}

impl Sender {
    /// Sends 4,000 records in each of eight seconds.
    fn start(settings: &str, chunk_records: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let topic = fresh_name();
        let often = "topic.metadata.refresh.interval.ms=500&statistics.interval.ms=200";
        let to = format!("kafka://{}/{topic}?{often}&{settings}", servers());
        let metrics = metrics(folder.path());
        let args = ["generate", "--to", &to, "--metrics-file", &metrics];
        let load = ["--records", "32000", "--rate", "4000"];
        let chunks = ["--chunk-records", chunk_records, "--format", "json"];
        let process = Background::start(&[&args[..], &load, &chunks].concat());
        Self {
            topic,
            folder,
            process,
        }
    }

    /// Lets it send for a while.
    fn sending() {
        std::thread::park_timeout(Duration::from_secs(3));
    }

    fn end(self) -> Outcome {
        let (status, stdout, told) = self.process.end();
        delete(&self.topic);
        Outcome {
            code: status.code().unwrap(),
            report: serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{told}")),
            metrics: fs::read_to_string(metrics(self.folder.path())).unwrap(),
            told,
        }
    }
}

pub(super) fn metrics(folder: &Path) -> String {
    folder.join("metrics").to_str().unwrap().to_owned()
}

impl Outcome {
    /// The value of a metric.
    pub(super) fn metric(&self, series: &str) -> u64 {
        let mut lines = self.metrics.lines();
        let value = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value
            .unwrap_or_else(|| panic!("{series}: {}", self.metrics))
            .parse()
            .unwrap()
    }

    /// Checks the code, and that one warning has this text.
    pub(super) fn check(&self, code: i32, text: &str) {
        assert_eq!(self.code, code, "{}", self.told);
        let warnings = self
            .told
            .lines()
            .filter(|line| line.starts_with("warning: "));
        let found = warnings.filter(|line| line.contains(text)).count();
        assert_eq!(found, 1, "{}", self.told);
    }
}

#[test]
#[ignore = "needs a Kafka cluster: KAFKA_BOOTSTRAP=host:port"]
fn topic_that_is_made_anew_is_a_loss() {
    let sender = Sender::start("create_topic=1,1", "10");
    Sender::sending();
    delete(&sender.topic);
    // The sender may be first, where brokers create topics by themselves.
    create(&sender.topic);
    let outcome = sender.end();
    outcome.check(65, "the topic was deleted and created again");
    assert_eq!(outcome.report["losses"], 1, "{}", outcome.report);
    assert!(outcome.report["lost_chunks"].as_u64().unwrap() > 100);
    assert_eq!(outcome.metric("baler_writer_losses_total"), 1);
    assert_eq!(outcome.report["delivered"], 32_000);
}

#[test]
#[ignore = "needs a Kafka cluster: KAFKA_BOOTSTRAP=host:port"]
fn partitions_that_are_added_are_used() {
    let sender = Sender::start("create_topic=2,1&partition_by=round_robin", "10");
    Sender::sending();
    let more = [0, 0, 0, 6, 0xff, 0xff, 0xff, 0xff];
    let topic = string(&sender.topic);
    ask(CREATE_PARTITIONS, &[&topic[..], &more].concat(), &IN_TIME);
    let outcome = sender.end();
    outcome.check(0, "the topic has more partitions");
    assert_eq!(outcome.report["counts"]["partitions_added"], 4);
    let series = "baler_writer_events_total{event=\"partitions_added\"}";
    assert_eq!(outcome.metric(series), 4);
}

#[test]
#[ignore = "needs a Kafka cluster: KAFKA_BOOTSTRAP=host:port"]
fn limit_that_is_lowered_splits_chunks() {
    let sender = Sender::start("create_topic=1,1", "2000");
    Sender::sending();
    set(&sender.topic, "max.message.bytes", "5000");
    let outcome = sender.end();
    outcome.check(0, "the topic's largest message is smaller than before");
    assert_eq!(outcome.report["counts"]["limits_lowered"], 1);
    assert!(outcome.report["splits"].as_u64().unwrap() > 0);
    assert_eq!(outcome.report["delivered"], 32_000);
    let series = "baler_writer_events_total{event=\"limits_lowered\"}";
    assert_eq!(outcome.metric(series), 1);
}

#[test]
#[ignore = "needs a Kafka cluster: KAFKA_BOOTSTRAP=host:port"]
fn topic_that_becomes_compacted_is_reported() {
    let sender = Sender::start("create_topic=1,1", "100");
    Sender::sending();
    set(&sender.topic, "cleanup.policy", "compact");
    let outcome = sender.end();
    outcome.check(0, "the topic is compacted now");
    assert_eq!(outcome.report["counts"]["compacted"], 1);
    let series = "baler_writer_events_total{event=\"compacted\"}";
    assert_eq!(outcome.metric(series), 1);
}

#[test]
#[ignore = "needs a Kafka cluster: KAFKA_BOOTSTRAP=host:port"]
fn unknown_topic_ends_a_sender() {
    let sender = Sender::start("allow.auto.create.topics=false", "100");
    let outcome = sender.end();
    assert_eq!(outcome.code, 69, "{}", outcome.told);
    assert!(outcome.told.contains("does not exist"), "{}", outcome.told);
    assert!(outcome.report["dropped"]["refused"].as_u64().unwrap() > 0);
    assert!(outcome.metric("baler_records_dropped_total{reason=\"refused\"}") > 0);
}
