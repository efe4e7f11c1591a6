//! A broker that stops, dies, or is not there yet.

use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_connector_testkit::PATIENCE;
use baler_connector_testkit::faults::{FaultError, RabbitMqNode};

use crate::support::{reader, writer};
use crate::traffic::{Order, Traffic};

/// Chunks pass again at most this long after the broker's return. It takes two seconds where nothing
/// else runs, and 30 if a writer waits for a confirmation of the old connection.
const SOON: Duration = Duration::from_secs(15);

fn survives(down: fn(&RabbitMqNode) -> Result<(), FaultError>, settings: &str, order: Order) {
    let node = RabbitMqNode::start().unwrap();
    let mut traffic = Traffic::new(&node.uri(&format!("?queue=q&{settings}")));
    traffic.confirm(1);
    node.sync_declarations().unwrap();
    for _ in 0..2 {
        traffic.confirm(300);
        down(&node).unwrap();
        for _ in 0..3 {
            traffic.step();
        }
        node.restart().unwrap();
        let passed = traffic.pass();
        assert!(passed < SOON, "chunks passed after {passed:?} only");
    }
    traffic.confirm(300);
    assert!(traffic.reconnects() >= 2);
    traffic.order = order;
    traffic.end();
}

/// A quorum queue that comes back may take the reader's new connection into its log before it has
/// noted the end of the old one, and hands out what nobody had until then. What the old one had
/// comes behind that, flagged.
const COMPETING: Order = Order::AllButRedelivered;

#[test]
fn clean_restart_of_the_broker_loses_nothing_confirmed() {
    survives(RabbitMqNode::stop, "queue_type=quorum", COMPETING);
}

#[test]
fn clean_restart_of_the_broker_keeps_the_order_of_one_active_reader() {
    survives(
        RabbitMqNode::stop,
        "queue_type=quorum&single_active=yes",
        Order::All,
    );
}

#[test]
fn clean_restart_of_the_broker_loses_nothing_confirmed_of_a_classic_queue() {
    survives(RabbitMqNode::stop, "queue_type=classic", Order::All);
}

#[test]
fn clean_restart_of_the_broker_loses_nothing_confirmed_of_a_stream() {
    survives(RabbitMqNode::stop, "queue_type=stream", Order::All);
}

#[test]
fn killed_broker_loses_nothing_confirmed() {
    survives(RabbitMqNode::kill, "queue_type=quorum", COMPETING);
}

#[test]
fn killed_broker_keeps_the_order_of_one_active_reader() {
    survives(
        RabbitMqNode::kill,
        "queue_type=quorum&single_active=yes",
        Order::All,
    );
}

#[test]
fn killed_broker_loses_nothing_confirmed_of_a_classic_queue() {
    survives(RabbitMqNode::kill, "queue_type=classic", Order::All);
}

#[test]
fn broker_may_be_down_at_the_start() {
    let node = RabbitMqNode::prepare().unwrap();
    let uri = node.uri("?queue=q");
    let error = writer(&uri).reopen(Instant::now() + Duration::from_secs(2));
    assert!(error.unwrap_err().is_retryable());
    let mut early = reader(&uri);
    let error = early.receive(Instant::now() + PATIENCE);
    assert!(error.unwrap_err().is_retryable());
    assert_eq!(early.stats().connected, Some(false));
    drop(early);

    let mut traffic = Traffic::new(&uri);
    traffic.step();
    assert_eq!(traffic.confirmed(), 0);
    node.restart().unwrap();
    let passed = traffic.pass();
    assert!(passed < SOON, "chunks passed after {passed:?} only");
    traffic.confirm(100);
    traffic.end();
}
