//! The script that scales consumers by lag: a second one joins, it leaves, and nothing is lost.
#![cfg(feature = "amqp")]

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use baler_connector_testkit::faults::RabbitMqNode;

use crate::support::{json_lines, output, wait_for, workspace};

const RECORDS: usize = 60_000;

#[test]
fn a_second_consumer_joins_when_lag_grows_and_leaves_when_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let node = RabbitMqNode::start().unwrap();
    let uri = node.uri("?queue=scaled");
    let records = RECORDS.to_string();
    output(&[
        "generate",
        "--to",
        &uri,
        "--records",
        &records,
        "--chunk-records",
        "5",
    ]);
    let log = fs::File::create(folder.path().join("log")).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut script = Command::new(workspace("deploy/autoscale/autoscale"))
        .args([
            "--folder",
            &path("consumers"),
            "--max",
            "2",
            "--high",
            "200",
            "--low",
            "20",
        ])
        .args(["--period", "0.3", "--calm", "2", "--"])
        .args([env!("CARGO_BIN_EXE_baler"), "receive", "--from", &uri])
        .args([
            "--format",
            "json",
            "--identity",
            "--output",
            &path("records-{}.jsonl"),
        ])
        .stdin(Stdio::null())
        .stdout(log)
        .spawn()
        .unwrap();
    let told = || fs::read_to_string(folder.path().join("log")).unwrap();
    wait_for("a second consumer", || {
        told().contains("one joined").then_some(())
    });
    wait_for("its end", || told().contains("one left").then_some(()));
    let pid = script.id().to_string();
    Command::new("kill")
        .args(["-s", "TERM", &pid])
        .status()
        .unwrap();
    assert!(script.wait().unwrap().success(), "{}", told());
    let mut seen = BTreeSet::new();
    for consumer in ["1", "2"] {
        let text = fs::read_to_string(path(&format!("records-{consumer}.jsonl"))).unwrap();
        let lines = json_lines(&text);
        assert!(
            !lines.is_empty(),
            "consumer {consumer} had nothing to do: {}",
            told()
        );
        seen.extend(lines.iter().map(|line| line["identity"].to_string()));
    }
    assert_eq!(seen.len(), RECORDS, "{}", told());
}
