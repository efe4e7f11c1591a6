//! Brokers that die, leave, return, and hand over what they lead.

use std::time::{Duration, Instant};

use baler_common::transport::Durability;
use baler_connector_testkit::{ChunkSource, Pump, Tap, TestMedium, drive_pair, within_patience};

use crate::support::{Kafka, PARTITIONS, TOPIC, soon};

/// One pump and one tap, and everything between them.
struct Line {
    pump: Pump,
    tap: Tap,
    source: ChunkSource,
    sent: usize,
}

impl Line {
    fn new(kafka: &Kafka) -> Self {
        Self {
            pump: Pump::open(kafka.writer_with(kafka.config())),
            tap: Tap::new(kafka.reader_with(kafka.config())),
            source: ChunkSource::new(1),
            sent: 0,
        }
    }

    /// Chunks of eight lanes.
    fn send(&mut self, number: u32) {
        let chunks: Vec<_> = (0..number)
            .map(|at| self.source.next(at % 8, 200))
            .collect();
        self.sent += chunks.len();
        self.pump.push(chunks);
        self.pump.step();
    }

    /// Everything is confirmed and everything that is confirmed arrives, in order.
    fn arrives(&mut self) {
        let sent = self.sent;
        drive_pair("all arrives", &mut self.pump, &mut self.tap, |pump, tap| {
            pump.is_done() && tap.distinct() == sent
        });
        assert_eq!(self.pump.confirmed(), sent);
        self.tap.assert_ordered();
    }
}

#[test]
fn confirmation_of_several_brokers_is_replicated() {
    let kafka = Kafka::with_brokers(3);
    let mut writer = kafka.writer_with(kafka.config());
    writer.reopen(soon()).unwrap();
    assert_eq!(writer.capability().durability, Durability::Replicated);
}

#[test]
fn each_broker_may_leave_and_return() {
    let kafka = Kafka::with_brokers(3);
    let mut line = Line::new(&kafka);
    line.send(40);
    line.arrives();
    for broker in kafka.cluster.brokers() {
        kafka.cluster.broker_leaves(broker).unwrap();
        let next = broker % 3 + 1;
        kafka.cluster.move_coordinator("baler", next).unwrap();
        line.send(40);
        line.arrives();
        kafka.cluster.broker_up(broker).unwrap();
    }
    assert_eq!(line.pump.breaks(), 0);
}

#[test]
fn all_brokers_may_die_at_once() {
    let kafka = Kafka::with_brokers(3);
    let mut line = Line::new(&kafka);
    for _ in 0..3 {
        line.send(30);
        for broker in kafka.cluster.brokers() {
            kafka.cluster.broker_down(broker).unwrap();
        }
        line.send(30);
        for broker in kafka.cluster.brokers() {
            kafka.cluster.broker_up(broker).unwrap();
        }
        line.arrives();
    }
}

#[test]
fn partitions_of_a_broker_that_died_are_written_once_another_leads() {
    let kafka = Kafka::with_brokers(3);
    let mut line = Line::new(&kafka);
    for partition in 0..PARTITIONS {
        kafka.cluster.move_leader(TOPIC, partition, 1).unwrap();
    }
    line.send(20);
    line.arrives();
    kafka.cluster.move_coordinator("baler", 2).unwrap();
    kafka.cluster.broker_down(1).unwrap();
    line.send(40);
    for partition in 0..PARTITIONS {
        let broker = 2 + i32::from(partition % 2);
        kafka.cluster.move_leader(TOPIC, partition, broker).unwrap();
    }
    line.arrives();
}

#[test]
fn leaders_and_the_coordinator_wander_while_chunks_flow() {
    let kafka = Kafka::with_brokers(3);
    let mut line = Line::new(&kafka);
    for round in 0..9 {
        let broker = round % 3 + 1;
        kafka.cluster.move_coordinator("baler", broker).unwrap();
        for partition in 0..PARTITIONS {
            kafka.cluster.move_leader(TOPIC, partition, broker).unwrap();
        }
        line.send(16);
        line.arrives();
    }
    assert_eq!(line.pump.breaks(), 0);
}

#[test]
fn answers_take_as_long_as_the_network() {
    let kafka = Kafka::fresh();
    let time = Duration::from_millis(300);
    kafka.cluster.round_trip(time).unwrap();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    let start = Instant::now();
    pump.push(ChunkSource::new(1).take(1));
    within_patience("it is confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
    assert!(start.elapsed() >= time, "{:?}", start.elapsed());
}

#[test]
fn cluster_says_what_cannot_be() {
    let kafka = Kafka::fresh();
    let error = kafka.cluster.broker_down(7).unwrap_err().to_string();
    assert!(error.starts_with("the embedded cluster: "), "{error}");
    assert!(kafka.cluster.create_topic(TOPIC, 4, 1).is_err());
    assert!(kafka.cluster.create_topic("other", 0, 1).is_err());
}
