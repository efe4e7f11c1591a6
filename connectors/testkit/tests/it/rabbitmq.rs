//! Private RabbitMQ nodes.

use std::fs;

use baler_connector_testkit::{RabbitMq, within_patience};

/// How many processes were started with the folder of a node of this process.
fn processes() -> usize {
    let folder = format!("/baler-rabbitmq-{}-", std::process::id());
    let processes = fs::read_dir("/proc").unwrap();
    let settings =
        processes.filter_map(|process| fs::read(process.ok()?.path().join("environ")).ok());
    settings
        .filter(|settings| String::from_utf8_lossy(settings).contains(&folder))
        .count()
}

#[test]
fn node_leaves_no_process_behind() {
    let node = RabbitMq::start();
    assert!(processes() >= 2, "a node and its port mapper");
    drop(node);
    within_patience("all processes end", || (processes() == 0).then_some(()));
}
