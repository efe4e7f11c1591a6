//! Random outages, restarts, crashes and full disks, and the properties that must hold.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use baler_connector_file::spool::{Spool, SpoolConfig, SpoolStatus};
use baler_connector_testkit::{
    ChunkSource, Label, MemoryLimits, MemoryMedium, Pump, Tap, within_patience,
};
use proptest::prelude::*;

use super::support::{assert_adds_up, config, receive, soon};

/// The next event.
#[derive(Debug, Clone)]
enum Event {
    /// Chunks are offered in these lanes, round robin.
    Send { chunks: usize, lanes: u32 },
    /// The owner takes the known confirmations; a few times.
    Step(u32),
    /// The medium goes away, or comes back.
    Reachable(bool),
    /// Connections break; the medium stays.
    Break,
    /// Confirmations are held back, or passed on.
    Hold(bool),
    /// A consumer takes what the medium has, and makes room there.
    Receive,
    /// The process ends in order, within this number of milliseconds, and another begins.
    Restart(u64),
    /// The process is killed, and another begins.
    Crash,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1..40_usize, 1..4_u32).prop_map(|(chunks, lanes)| Event::Send { chunks, lanes }),
        4 => (1..30_u32).prop_map(Event::Step),
        3 => any::<bool>().prop_map(Event::Reachable),
        2 => Just(Event::Break),
        1 => any::<bool>().prop_map(Event::Hold),
        4 => Just(Event::Receive),
        1 => (0..400_u64).prop_map(Event::Restart),
        1 => Just(Event::Crash),
    ]
}

/// One life of a sender.
struct Life {
    pump: Pump,
    watch: baler_connector_file::spool::SpoolWatch,
    source: ChunkSource,
    /// Labels by ticket.
    labels: Vec<Label>,
}

struct World {
    medium: MemoryMedium,
    tap: Tap,
    config: SpoolConfig,
    life: Option<Life>,
    producer: u64,
    /// Chunks that some life has seen confirmed or spooled.
    promised: HashSet<Label>,
    offered: HashSet<Label>,
}

impl World {
    fn begin(&mut self) {
        self.producer += 1;
        let spool = Spool::new(Box::new(self.medium.writer()), self.config.clone());
        let watch = spool.watch();
        self.life = Some(Life {
            pump: Pump::open(Box::new(spool)),
            watch,
            source: ChunkSource::new(self.producer),
            labels: Vec::new(),
        });
    }

    fn life(&mut self) -> &mut Life {
        self.life.as_mut().unwrap()
    }

    fn send(&mut self, chunks: usize, lanes: u32) {
        let life = self.life.as_mut().unwrap();
        for at in 0..chunks {
            let lane = u32::try_from(at).unwrap() % lanes;
            let chunk = life.source.next(lane, 30 + at * 61 % 900);
            let label = Label {
                producer: self.producer,
                lane,
                sequence: chunk.meta.identity.sequence,
            };
            life.labels.push(label);
            self.offered.insert(label);
            life.pump.push([chunk]);
        }
    }

    /// Notes the chunks of this life that are safe: all that are neither pending nor unconfirmed.
    fn note(&mut self, life: &Life) {
        let unsafe_tickets: HashSet<u64> = life.pump.unconfirmed().into_iter().collect();
        let pending = life.pump.pending();
        let told = life.labels.len() - pending;
        for (ticket, label) in life.labels.iter().enumerate().take(told) {
            if !unsafe_tickets.contains(&(ticket as u64)) {
                self.promised.insert(*label);
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Send { chunks, lanes } => self.send(chunks, lanes),
            Event::Step(times) => {
                for _ in 0..times {
                    self.life().pump.step();
                    self.life().pump.wait(Duration::from_millis(1));
                }
            }
            Event::Reachable(reachable) => self.medium.set_unreachable(!reachable),
            Event::Break => self.medium.break_connections(),
            Event::Hold(hold) => self.medium.hold_confirmations(hold),
            Event::Receive => receive(&mut self.tap),
            Event::Restart(millis) => {
                let Life {
                    pump,
                    watch,
                    source,
                    labels,
                } = self.life.take().unwrap();
                let by = Instant::now() + Duration::from_millis(millis);
                let (pump, _) = pump.close(by);
                assert_adds_up(&watch.status());
                let life = Life {
                    pump,
                    watch,
                    source,
                    labels,
                };
                self.note(&life);
                drop(life);
                self.begin();
            }
            Event::Crash => {
                let life = self.life.take().unwrap();
                self.note(&life);
                // Dropped, not closed. The lock goes with the thread.
                drop(life);
                self.begin();
            }
        }
    }

    fn settle(mut self) -> SpoolStatus {
        self.medium.set_unreachable(false);
        self.medium.hold_confirmations(false);
        self.send(5, 1);
        within_patience("everything is sent on", || {
            let life = self.life.as_mut().unwrap();
            life.pump.step();
            receive(&mut self.tap);
            let status = life.watch.status();
            (life.pump.is_done() && status.stats.waiting_chunks == 0).then_some(())
        });
        let life = self.life.take().unwrap();
        self.note(&life);
        let status = life.watch.status();
        assert_adds_up(&status);
        life.pump.close(soon());
        receive(&mut self.tap);
        let arrived: HashSet<Label> = self.tap.received().iter().copied().collect();
        let missing: Vec<_> = self.promised.difference(&arrived).collect();
        assert!(
            missing.is_empty(),
            "told to be safe and missing: {missing:?}"
        );
        assert!(arrived.is_subset(&self.offered), "something was never sent");
        self.tap.assert_ordered();
        status
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        max_shrink_time: 20_000,
        .. ProptestConfig::default()
    })]

    /// In every case: chunks reported as confirmed or spooled arrive, first arrivals are in the
    /// order of their lanes, and the figures add up.
    #[test]
    fn nothing_that_was_told_to_be_safe_is_lost(
        events in prop::collection::vec(event(), 1..40),
        max_bytes in prop_oneof![Just(1_u64 << 30), Just(20_000)],
        segment_bytes in prop_oneof![Just(1_u64 << 24), Just(2_000)],
        spool_after in prop_oneof![Just(0_u64), Just(5)],
    ) {
        let folder = tempfile::tempdir().unwrap();
        // A memory medium that breaks loses the chunks that it has accepted and has no room for.
        let medium = MemoryMedium::new(MemoryLimits {
            capacity_chunks: NonZeroUsize::new(8).unwrap(),
            ..MemoryLimits::default()
        });
        let mut config = config(folder.path());
        config.max_bytes = max_bytes.try_into().unwrap();
        config.segment_bytes = segment_bytes.try_into().unwrap();
        config.spool_after = Duration::from_millis(spool_after);
        let tap = Tap::new(Box::new(medium.reader()));
        let mut world = World {
            medium,
            tap,
            config,
            life: None,
            producer: 0,
            promised: HashSet::new(),
            offered: HashSet::new(),
        };
        world.begin();
        for event in events {
            world.happen(event);
        }
        world.settle();
    }
}
