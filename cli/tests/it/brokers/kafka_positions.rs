//! A group of a real cluster whose position is not in the topic any more. The receiver says so by
//! default, in its summary, in a metric and by its exit code.

use std::fs;

use super::kafka_topic::{Outcome, ask, create, delete, metrics, request, servers, string};
use super::real_log::fresh_name;
use crate::support::{Background, output, read_json, wait_for};

/// The numbers of Kafka's requests, and versions that brokers know since 2.3.
const OFFSET_COMMIT: [i16; 2] = [8, 2];
const DELETE_RECORDS: [i16; 2] = [21, 0];

const REMOVALS: &str = "baler_reader_removals_total{worker=\"0\"}";
const REMOVED: &str = "baler_chunks_removed_total{worker=\"0\"}";

/// A topic of one partition, and a group of the same name. It is deleted when it goes out of scope.
struct Group {
    topic: String,
    folder: tempfile::TempDir,
}

impl Group {
    /// The group has read 401 chunks.
    fn new() -> Self {
        let group = Self {
            topic: fresh_name(),
            folder: tempfile::tempdir().unwrap(),
        };
        create(&group.topic);
        group.send("4000");
        let outcome = group.receive();
        assert_eq!(outcome.code, 0, "{}", outcome.told);
        assert_eq!(outcome.report["chunks"], 401);
        group
    }

    /// Sends records in chunks of ten, by a new producer. Its last chunk is empty.
    fn send(&self, records: &str) {
        let to = format!("kafka://{}/{}", servers(), self.topic);
        let args = ["generate", "--to", &to, "--records", records];
        output(&[&args[..], &["--chunk-records", "10"]].concat());
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Starts a receiver that ends after a time without chunks.
    fn start(&self, idle: &str) -> Background {
        let (topic, metrics) = (&self.topic, metrics(self.folder.path()));
        let often = "topic.metadata.refresh.interval.ms=500&auto.commit.interval.ms=500";
        let from = format!("kafka://{}/{topic}?group.id={topic}&{often}", servers());
        let (summary, output) = (self.path("summary"), self.path("records"));
        let args = ["receive", "--from", &from, "--idle-timeout", idle];
        let files = ["--summary", &summary, "--metrics-file", &metrics];
        let output = ["--format", "json", "--output", &output];
        Background::start(&[&args[..], &files, &output].concat())
    }

    fn end(&self, receiver: Background) -> Outcome {
        let (status, _, told) = receiver.end();
        Outcome {
            code: status.code().unwrap(),
            report: read_json(self.path("summary").as_ref()),
            metrics: fs::read_to_string(metrics(self.folder.path())).unwrap(),
            told,
        }
    }

    fn receive(&self) -> Outcome {
        self.end(self.start("3s"))
    }

    /// Checks the message and the figures of a receiver, and that the next one reads and reports
    /// nothing.
    fn check(&self, outcome: &Outcome, text: &str, [chunks, removed]: [u64; 2]) {
        outcome.check(65, text);
        assert_eq!(outcome.report["removals"], 1, "{}", outcome.report);
        assert_eq!(outcome.report["removed"], removed, "{}", outcome.report);
        assert_eq!(outcome.report["chunks"], chunks, "{}", outcome.report);
        assert_eq!(outcome.metric(REMOVALS), 1);
        assert_eq!(outcome.metric(REMOVED), removed);
        let next = self.receive();
        assert_eq!(
            (next.code, &next.report["chunks"]),
            (0, &0.into()),
            "{}",
            next.told
        );
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        delete(&self.topic);
    }
}

#[test]
#[ignore = "needs a Kafka cluster: KAFKA_BOOTSTRAP=host:port"]
fn retention_past_a_stopped_group_is_reported() {
    let group = Group::new();
    group.send("1000");
    let partition = [&[0, 0, 0, 1, 0, 0, 0, 0][..], &451_i64.to_be_bytes()].concat();
    let item = [string(&group.topic), partition].concat();
    ask(DELETE_RECORDS, &item, &[0, 0, 0x75, 0x30]);
    let outcome = group.receive();
    let text = "the offsets from 401 to before 451 were removed by the topic's limits";
    group.check(&outcome, text, [51, 50]);
    // The second producer's first chunks are among them.
    let first = &outcome.report["starts"][0]["first_sequence"];
    assert_eq!(first, 50, "{}", outcome.report);
    assert!(outcome.told.contains("at sequence 50"), "{}", outcome.told);
}

#[test]
#[ignore = "needs a Kafka cluster: KAFKA_BOOTSTRAP=host:port"]
fn position_beyond_the_end_is_reported() {
    let group = Group::new();
    let one = 1_i32.to_be_bytes();
    // No member and no generation, and the broker's time to keep it.
    let group_id = [
        string(&group.topic),
        vec![0xff; 4],
        string(""),
        vec![0xff; 8],
    ]
    .concat();
    let partition = [&one[..], &[0; 4], &9_999_i64.to_be_bytes(), &string("")].concat();
    let topic = [&one[..], &string(&group.topic), &partition].concat();
    request(OFFSET_COMMIT, &[group_id, topic].concat());
    let outcome = group.receive();
    let text = "reading goes on at offset 0, and 9999 was to be next";
    group.check(&outcome, text, [401, 0]);
}

#[test]
#[ignore = "needs a Kafka cluster: KAFKA_BOOTSTRAP=host:port"]
fn topic_that_is_made_anew_under_a_receiver_is_reported() {
    let group = Group::new();
    group.send("100");
    let receiver = group.start("15s");
    wait_for("the first records", || {
        let read = fs::read_to_string(group.path("records")).ok()?;
        // After the 4,000 records of the first receiver.
        (read.lines().count() == 4_100).then_some(())
    });
    // The group's position is committed.
    std::thread::park_timeout(std::time::Duration::from_secs(2));
    delete(&group.topic);
    create(&group.topic);
    group.send("1000");
    let outcome = group.end(receiver);
    let text = "reading goes on at offset 0, and 412 was to be next";
    group.check(&outcome, text, [112, 0]);
}
