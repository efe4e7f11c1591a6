//! A broker that stops, dies, or is not there yet.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, ChunkWriter, End, Outbox, OutboxSettings};
use baler_connector_testkit::{
    Bell, ChunkSource, Label, PATIENCE, RabbitMq, Tap, read_label, within,
};

use crate::support::{reader, writer};

/// A writer with the owner that it is made for, a reader, and what passed them.
struct Stream {
    outbox: Outbox,
    source: ChunkSource,
    tap: Tap,
    offered: usize,
    confirmed: HashSet<Label>,
}

impl Stream {
    fn new(uri: &str) -> Self {
        let mut settings = OutboxSettings::default();
        settings.retry.max_delay = Duration::from_millis(500);
        let writer: Box<dyn ChunkWriter> = writer(uri);
        Self {
            outbox: Outbox::new(writer, settings, Arc::<Bell>::default()),
            source: ChunkSource::new(1),
            tap: Tap::new(reader(uri)),
            offered: 0,
            confirmed: HashSet::new(),
        }
    }

    /// Keeps the outbox full and takes what comes.
    fn step(&mut self) {
        let now = Instant::now();
        while self.outbox.has_room() {
            self.outbox.push(self.source.next(0, 500), now);
            self.offered += 1;
        }
        self.drive();
    }

    fn drive(&mut self) {
        let mut fates = Vec::new();
        let now = Instant::now();
        self.outbox.drive(now, None, &mut fates);
        for fate in fates {
            let label = read_label(&fate.chunk.bytes);
            assert!(
                matches!(fate.end, End::Confirmed),
                "{label:?}: {:?}",
                fate.end
            );
            assert!(
                self.confirmed.insert(label),
                "{label:?} was confirmed twice"
            );
        }
        while self.tap.poll(Duration::from_millis(1)) {}
    }

    /// Goes on until so many more are confirmed.
    fn confirm(&mut self, chunks: usize) {
        let enough = self.confirmed.len() + chunks;
        within(4 * PATIENCE, "chunks are confirmed", || {
            self.step();
            (self.confirmed.len() >= enough).then_some(())
        });
    }

    /// Offers no more, and checks that all arrives.
    fn end(mut self) {
        within(4 * PATIENCE, "all is confirmed and arrives", || {
            self.drive();
            (self.outbox.is_empty() && self.tap.distinct() >= self.offered).then_some(())
        });
        let received: HashSet<Label> = self.tap.received().iter().copied().collect();
        let missing: Vec<_> = self.confirmed.difference(&received).collect();
        assert!(missing.is_empty(), "confirmed and lost: {missing:?}");
        assert_eq!(
            received.len(),
            self.offered,
            "something came that was not offered"
        );
    }
}

fn survives(down: impl Fn(&RabbitMq), queue_type: &str) {
    let node = RabbitMq::start();
    let mut stream = Stream::new(&node.uri(&format!("?queue=q&queue_type={queue_type}")));
    stream.confirm(1);
    node.sync_declarations();
    for _ in 0..2 {
        stream.confirm(300);
        down(&node);
        for _ in 0..3 {
            stream.step();
        }
        node.restart();
    }
    stream.confirm(300);
    stream.end();
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
    let error = reader(&uri).receive(Instant::now() + PATIENCE);
    assert!(error.unwrap_err().is_retryable());

    let mut stream = Stream::new(&uri);
    stream.step();
    assert!(stream.confirmed.is_empty());
    node.restart();
    stream.confirm(100);
    stream.end();
}
