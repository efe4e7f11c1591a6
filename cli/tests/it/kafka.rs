//! Records through Kafka: a receiver with a cluster inside it, a sender that connects to it.

use serde_json::json;

use crate::support::{Receiver, baler, json, real_log};

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
