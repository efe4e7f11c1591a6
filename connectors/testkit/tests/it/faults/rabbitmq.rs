//! Private RabbitMQ nodes.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use baler_connector_testkit::faults::RabbitMqNode;

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
    let node = RabbitMqNode::start().unwrap();
    assert!(processes() >= 2, "a node and its port mapper");
    drop(node);
    let by = Instant::now() + Duration::from_secs(30);
    while processes() > 0 {
        assert!(Instant::now() < by, "processes of the node are left");
        thread::yield_now();
    }
}

#[test]
fn shared_node_stays_while_a_process_has_its_uri() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("baler-rabbitmq");
    let uri = RabbitMqNode::shared(&folder).unwrap().uri("");
    // The shell that ends an unused node takes this lock first.
    let users = File::open(folder.join("users")).unwrap();
    assert!(users.try_lock().is_err(), "the node may end");
    assert_eq!(RabbitMqNode::shared(&folder).unwrap().uri(""), uri);
}
