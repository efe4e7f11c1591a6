//! A writer with its owner, a reader, and what must hold between them whatever happens.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkWriter, End, Outbox, OutboxSettings};
use baler_connector_testkit::{ChunkSource, Label, Notification, PATIENCE, Tap, read_label};

use crate::support::{reader, writer};

/// A writer with the owner that it is made for, a reader, and what passed them.
pub(crate) struct Traffic {
    outbox: Outbox,
    source: ChunkSource,
    pub(crate) tap: Tap,
    offered: usize,
    confirmed: HashSet<Label>,
    bytes: usize,
    pub(crate) order: Order,
}

/// Which chunks arrive in the order of their lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// All of them.
    All,
    /// All but those that were on their way to the reader over a connection that was lost.
    AllButRedelivered,
    /// Those that are refused and tried again come later, too.
    None,
}

impl Traffic {
    /// From and to the same place.
    pub(crate) fn new(uri: &str) -> Self {
        Self::between(uri, uri)
    }

    pub(crate) fn between(to: &str, from: &str) -> Self {
        Self::with(OutboxSettings::default(), to, from)
    }

    /// With an outbox of these settings.
    pub(crate) fn with(settings: OutboxSettings, to: &str, from: &str) -> Self {
        let writer: Box<dyn ChunkWriter> = writer(to);
        Self {
            outbox: Outbox::new(writer, settings, Arc::<Notification>::default()),
            source: ChunkSource::new(1),
            tap: Tap::new(reader(from)),
            offered: 0,
            confirmed: HashSet::new(),
            bytes: 500,
            order: Order::All,
        }
    }

    /// Chunks of another size.
    pub(crate) fn of(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Keeps the outbox full and takes what comes.
    pub(crate) fn step(&mut self) {
        let now = Instant::now();
        while self.outbox.has_room() {
            let lane = u32::try_from(self.offered % 3).unwrap();
            self.outbox.push(self.source.next(lane, self.bytes), now);
            self.offered += 1;
        }
        self.drive();
    }

    pub(crate) fn drive(&mut self) {
        let mut fates = Vec::new();
        let now = Instant::now();
        self.outbox.drive(now, None, &mut fates);
        for fate in fates {
            let label = read_label(&fate.chunk.bytes);
            match fate.end {
                End::Confirmed => {
                    let new = self.confirmed.insert(label);
                    assert!(new, "{label:?} was confirmed twice");
                }
                end => panic!("{label:?}: {end:?}"),
            }
        }
        for _ in 0..256 {
            if !self.tap.poll(Duration::from_millis(1)) {
                break;
            }
        }
    }

    pub(crate) fn offered(&self) -> usize {
        self.offered
    }

    pub(crate) fn confirmed(&self) -> usize {
        self.confirmed.len()
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.outbox.stats().writer.blocked
    }

    /// How often the writer's connection was lost.
    pub(crate) fn broken(&self) -> u64 {
        self.outbox.stats().broken
    }

    pub(crate) fn reconnects(&mut self) -> u64 {
        self.tap.reader().stats().reconnects
    }

    /// Goes on until so many more are confirmed.
    pub(crate) fn confirm(&mut self, chunks: usize) {
        let enough = self.confirmed.len() + chunks;
        self.until("chunks are confirmed", |traffic| {
            traffic.confirmed.len() >= enough
        });
    }

    /// Goes on until a chunk was confirmed and one was received for the first time; yields how long
    /// that took.
    pub(crate) fn pass(&mut self) -> Duration {
        let start = Instant::now();
        let (confirmed, received) = (self.confirmed.len(), self.tap.distinct());
        self.until("a chunk passes", |traffic| {
            traffic.confirmed.len() > confirmed && traffic.tap.distinct() > received
        });
        start.elapsed()
    }

    /// Goes on until something is so.
    pub(crate) fn until(&mut self, what: &str, done: impl Fn(&mut Self) -> bool) {
        let by = Instant::now() + 4 * PATIENCE;
        while !done(self) {
            self.step();
            assert!(Instant::now() < by, "not in time: {what}: {}", self.state());
        }
    }

    fn state(&mut self) -> String {
        let (stats, outbox) = (self.tap.reader().stats(), self.outbox.stats());
        format!(
            "{} of {} came, {} are confirmed\n{stats:?}\n{outbox:?}",
            self.tap.distinct(),
            self.offered,
            self.confirmed.len()
        )
    }

    /// Offers no more, and checks that all arrives: what was confirmed, nothing else, in the order
    /// of its lane as far as that is promised.
    pub(crate) fn end(mut self) -> Tap {
        let by = Instant::now() + 4 * PATIENCE;
        while !self.outbox.is_empty() || self.tap.distinct() < self.offered {
            self.drive();
            assert!(Instant::now() < by, "not all arrives: {}", self.state());
        }
        let received: HashSet<Label> = self.tap.received().iter().copied().collect();
        let missing: Vec<_> = self.confirmed.difference(&received).collect();
        assert!(missing.is_empty(), "confirmed and lost: {missing:?}");
        assert_eq!(
            received.len(),
            self.offered,
            "something came that was not offered"
        );
        match self.order {
            Order::All => self.tap.assert_ordered(),
            Order::AllButRedelivered => self.tap.assert_only_redelivered_are_late(),
            Order::None => {}
        }
        self.tap
    }
}
