//! Records through Kafka: a receiver with a cluster inside it, a sender that connects to it.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Background, Receiver, baler, json, output, read_json, real_log, wait_for};

#[test]
fn the_log_goes_through_kafka_whole() {
    let folder = tempfile::tempdir().unwrap();
    let count = ["--count", "6541"];
    let receiver = Receiver::at("kafka+mock:records?partitions=2", folder.path(), &count);
    let to = receiver.uri.replace("tcp://", "kafka://") + "/records";
    let log = real_log();
    let sent = json(&["send", "--from", &log, "--to", &to, "--format", "json"]);
    assert_eq!(sent["delivered"], 6541);
    assert_eq!(sent["dropped"], json!({}));
    let (records, summary) = receiver.succeed();
    assert_eq!(records.lines().count(), 6541);
    assert_eq!(summary["records"], 6541);
    assert_eq!(summary["gaps"], json!([]));
}

#[test]
fn settings_that_contradict_each_other_are_named() {
    let to = "kafka://me:hush@h:1/topic?security.protocol=sasl_plaintext&acks=1";
    let wrong = baler(&["generate", "--to", to]).code(78);
    let told = String::from_utf8(wrong.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains("acks=1 conflicts with enable.idempotence=true"),
        "{told}"
    );
    assert!(!told.contains("hush"), "{told}");
}

#[test]
fn topic_is_created_with_the_shape_that_its_uri_says() {
    let to = "kafka+mock:records?partitions=2&create_topic=3,1";
    let both = baler(&["generate", "--to", to]).code(78);
    let told = String::from_utf8(both.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains("partitions conflicts with create_topic"),
        "{told}"
    );

    let to = "kafka+mock:records?create_topic=3,1";
    let given = ["--records", "500", "--format", "json"];
    let sent = json(&[&["generate", "--to", to], &given[..]].concat());
    assert_eq!(sent["delivered"], 500);
}

#[test]
fn topic_cannot_be_created_where_tokens_are_asked_for() {
    let to = "kafka://h:1/topic?security.protocol=sasl_ssl&sasl.mechanism=OAUTHBEARER\
              &sasl.oauthbearer.token.file=/token&create_topic=3,1";
    let wrong = baler(&["generate", "--to", to]).code(78);
    let told = String::from_utf8(wrong.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains("create_topic=3,1 conflicts with sasl.mechanism=OAUTHBEARER"),
        "{told}"
    );
}

#[test]
fn unknown_topic_that_no_broker_creates_ends_a_sender() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::at("kafka+mock:records", folder.path(), &[]);
    let to = receiver.uri.replace("tcp://", "kafka://");
    let to = to + "/unknown?allow.auto.create.topics=false";
    let metrics = folder.path().join("metrics");
    let metrics = metrics.to_str().unwrap();
    let flags = ["--records", "10", "--give-up", "10m", "--format", "json"];
    let args = [
        &["generate", "--to", &to, "--metrics-file", metrics],
        &flags[..],
    ]
    .concat();
    let run = baler(&args).code(69);
    let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    for part in [
        "gave up on kafka://127.0.0.1",
        "topic unknown does not exist",
        "create it",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let report: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(report["dropped"]["refused"], 10, "{report}");
    let metrics = fs::read_to_string(metrics).unwrap();
    let dropped = "baler_records_dropped_total{reason=\"refused\"} 10\n";
    assert!(metrics.contains(dropped), "{metrics}");
}

/// The mock cluster keeps 5 MiB a partition, and a topic of a real one what its limits allow.
#[test]
fn chunks_that_a_topic_dropped_before_they_were_read_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    let from = ["receive", "--from", "kafka+mock:records?partitions=1"];
    let flags = ["--format", "json", "--idle-timeout", "2s", "--port-file"];
    let args = [&from[..], &flags, &[port.to_str().unwrap()]].concat();
    let mut receiver = Background::start(&args);
    let address = wait_for("the address", || fs::read_to_string(&port).ok());
    let to = format!("kafka://{}/records", address.trim());
    output(&["generate", "--to", &to, "--records", "10000"]);
    // It waits for a reader of its output, and fetches no more.
    receiver.wait_for_output();
    output(&["generate", "--to", &to, "--records", "1200000"]);
    let (status, _, told) = receiver.end();
    assert_eq!(status.code(), Some(65), "{told}");
    assert!(
        told.contains("were removed by the topic's limits"),
        "{told}"
    );
    assert!(told.contains("removals          1"), "{told}");
}

/// The group was stopped while the topic dropped chunks that it had not read.
#[test]
fn chunks_that_a_topic_dropped_while_the_group_was_stopped_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (port, summary, metrics) = (path("port"), path("summary"), path("metrics"));
    let from = ["receive", "--from", "kafka+mock:records?partitions=1"];
    let flags = ["--format", "none", "--port-file", &port];
    // The cluster lives in this receiver, which has a group of its own.
    let _cluster = Background::start(&[&from[..], &flags].concat());
    let address = wait_for("the address", || fs::read_to_string(&port).ok());
    let topic = format!("kafka://{}/records", address.trim());
    let late = format!("{topic}?group.id=late");
    let receive = ["receive", "--from", &late, "--format", "none"];
    let flags = ["--idle-timeout", "2s", "--summary", &summary];
    let receive = [&receive[..], &flags, &["--metrics-file", &metrics]].concat();
    output(&["generate", "--to", &topic, "--records", "10000"]);
    output(&receive);
    output(&["generate", "--to", &topic, "--records", "1200000"]);
    let passed = baler(&receive).code(65);
    let told = String::from_utf8(passed.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains("were removed by the topic's limits before they were read"),
        "{told}"
    );
    let summary = read_json(summary.as_ref());
    assert_eq!(summary["removals"], 1);
    let removed = summary["removed"].as_u64().unwrap();
    assert!(removed > 0, "{summary}");
    let metrics = fs::read_to_string(&metrics).unwrap();
    let metric = format!("baler_chunks_removed_total{{worker=\"0\"}} {removed}");
    assert!(metrics.contains(&metric), "{metrics}");
    // The second producer's first chunks are among them.
    let first = &summary["starts"][0]["first_sequence"];
    assert!(first.as_u64().is_some_and(|it| it > 0), "{summary}");
    assert!(
        told.contains(&format!("at sequence {first}")),
        "{first}: {told}"
    );
    // The group goes on from there.
    let again = baler(&receive).success();
    let told = String::from_utf8_lossy(&again.get_output().stderr).into_owned();
    assert!(!told.contains("removed"), "{told}");
}
