//! The real log of 2010 through brokers to 1, 2 and 4 consumers, one of which is killed midway:
//! every record is there, by its identity.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::real_log::expected;
use crate::support::{Background, command, json, json_lines, real_log, wait_for};

/// Settings of consumers and senders, so that each consumer gets a share.
#[cfg(feature = "kafka")]
const KAFKA: &str = "partition_by=round_robin&create_topic=4,1";

/// Returns the name of a queue or topic that no test used before.
pub(super) fn fresh_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    format!("real-log-{}-{}", std::process::id(), now.as_nanos())
}

/// A consumer with an output that no process reads. It stops in the middle of its share, since a
/// pipe holds 64 KiB and the log has 2 MiB of JSON.
struct Doomed {
    child: Child,
    pipe: BufReader<ChildStdout>,
    text: String,
}

impl Doomed {
    fn start(uri: &str) -> Self {
        let mut command = command();
        command.args(["receive", "--from", uri, "--format", "json", "--identity"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        Self {
            pipe: BufReader::new(child.stdout.take().unwrap()),
            text: String::new(),
            child,
        }
    }

    /// Waits for its first record.
    fn wait_for_record(&mut self) {
        self.pipe.read_line(&mut self.text).unwrap();
    }

    /// Kills it, and returns its output.
    fn die(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut text = std::mem::take(&mut self.text);
        self.pipe.read_to_string(&mut text).unwrap();
        // The last line may have been cut.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        text.truncate(whole);
        text
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn consumer(uri: &str, output: &Path) -> Background {
    let output = output.to_str().unwrap();
    let args = ["receive", "--from", uri, "--format", "json", "--identity"];
    Background::start(&[args.as_slice(), &["--output", output]].concat())
}

/// Adds records by their identity. Returns how many were there before.
fn collect(records: &mut BTreeMap<(u64, u64), Value>, lines: Vec<Value>) -> usize {
    let mut copies = 0;
    for mut record in lines {
        let identity = record.as_object_mut().unwrap().remove("identity").unwrap();
        let number = |name: &str| identity[name].as_u64().unwrap();
        let place = (number("sequence"), number("index"));
        if let Some(before) = records.insert(place, record.clone()) {
            assert_eq!(before, record, "two records with one identity");
            copies += 1;
        }
    }
    copies
}

fn whole_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // The last line may not be whole yet.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    json_lines(whole)
}

/// Sends the log to this number of consumers, and kills the first one midway.
fn arrives_whole(uri: &str, consumers: usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut doomed = Doomed::start(uri);
    let outputs: Vec<PathBuf> = (1..consumers)
        .map(|number| folder.path().join(number.to_string()))
        .collect();
    let log = real_log();
    let mut send = vec!["send", "--from", &log, "--to", uri, "--format", "json"];
    send.extend(["--chunk-records", "20"]);
    let sent = json(&send);
    let expected = expected();
    assert_eq!(sent["delivered"], expected.len());

    // The others join later: they could otherwise take the whole log first.
    doomed.wait_for_record();
    let mut others: Vec<Background> = outputs.iter().map(|it| consumer(uri, it)).collect();
    wait_for("a record of another consumer", || {
        let has_record = |it: &PathBuf| !whole_lines(it).is_empty();
        (outputs.is_empty() || outputs.iter().any(has_record)).then_some(())
    });
    let first = doomed.die();
    let mut records = BTreeMap::new();
    collect(&mut records, json_lines(&first));
    assert!(
        !records.is_empty() && records.len() < expected.len(),
        "it was not killed midway: {} records",
        records.len()
    );
    let replacement = folder.path().join("replacement");
    others.push(consumer(uri, &replacement));
    wait_for("every record", || {
        let mut all = records.clone();
        for output in outputs.iter().chain([&replacement]) {
            collect(&mut all, whole_lines(output));
        }
        (all.len() >= expected.len()).then_some(())
    });
    // Together: the group changes for each while it acknowledges its last records.
    for other in &others {
        other.signal("TERM");
    }
    for other in others {
        let (status, _, stderr) = other.end();
        assert!(status.success(), "{status}: {stderr}");
    }
    for output in outputs.iter().chain([&replacement]) {
        collect(&mut records, whole_lines(output));
    }
    // By identity, and so in the order in which they were sent.
    let records: Vec<Value> = records.into_values().collect();
    assert_eq!(records.len(), expected.len());
    for (position, (record, expected)) in records.iter().zip(&expected).enumerate() {
        assert_eq!(record, expected, "record {position}, {consumers} consumers");
    }
}

#[cfg(feature = "amqp")]
#[test]
fn the_log_goes_through_rabbitmq_to_1_2_and_4_consumers_one_of_which_is_killed() {
    let node = baler_connector_testkit::faults::RabbitMqNode::start().unwrap();
    for consumers in [1, 2, 4] {
        let queue = fresh_name();
        arrives_whole(&node.uri(&format!("?queue={queue}&prefetch=8")), consumers);
    }
}

#[cfg(feature = "kafka")]
#[test]
#[ignore = "needs a Kafka cluster: KAFKA_BOOTSTRAP=host:port"]
fn the_log_goes_through_a_real_cluster_to_1_2_and_4_consumers_one_of_which_is_killed() {
    let servers = std::env::var("KAFKA_BOOTSTRAP").expect("KAFKA_BOOTSTRAP=host:port");
    for consumers in [1, 2, 4] {
        let topic = fresh_name();
        let settings = format!("{KAFKA}&group.id={topic}");
        arrives_whole(&format!("kafka://{servers}/{topic}?{settings}"), consumers);
    }
}
