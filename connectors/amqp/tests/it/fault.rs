//! A broker that stops, dies, or is not there yet.

use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_connector_testkit::{PATIENCE, RabbitMq};

use crate::support::{reader, writer};
use crate::traffic::Traffic;

/// How soon after the broker's return chunks pass again.
const SOON: Duration = Duration::from_secs(5);

fn survives(down: impl Fn(&RabbitMq), queue_type: &str) {
    let node = RabbitMq::start();
    let mut traffic = Traffic::new(&node.uri(&format!("?queue=q&queue_type={queue_type}")));
    traffic.confirm(1);
    node.sync_declarations();
    for _ in 0..2 {
        traffic.confirm(300);
        down(&node);
        for _ in 0..3 {
            traffic.step();
        }
        node.restart();
        let passed = traffic.pass();
        assert!(passed < SOON, "chunks passed after {passed:?} only");
    }
    traffic.confirm(300);
    assert!(traffic.reconnects() >= 2);
    // A quorum queue that comes back may refuse chunks until it has a leader, and may notice late that
    // the reader's old connection is gone.
    traffic.may_overtake = queue_type == "quorum";
    traffic.end();
}

#[test]
fn clean_restart_of_the_broker_loses_nothing_confirmed() {
    survives(RabbitMq::stop, "quorum");
}

#[test]
fn clean_restart_of_the_broker_loses_nothing_confirmed_of_a_classic_queue() {
    survives(RabbitMq::stop, "classic");
}

#[test]
fn clean_restart_of_the_broker_loses_nothing_confirmed_of_a_stream() {
    survives(RabbitMq::stop, "stream");
}

#[test]
fn killed_broker_loses_nothing_confirmed() {
    survives(RabbitMq::kill, "quorum");
}

#[test]
fn killed_broker_loses_nothing_confirmed_of_a_classic_queue() {
    survives(RabbitMq::kill, "classic");
}

#[test]
fn broker_may_be_down_at_the_start() {
    let node = RabbitMq::prepare();
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
    node.restart();
    let passed = traffic.pass();
    assert!(passed < SOON, "chunks passed after {passed:?} only");
    traffic.confirm(100);
    traffic.end();
}
