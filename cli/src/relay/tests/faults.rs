//! In spite of failures and kills, every chunk that was acknowledged at the source is in the sink.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baler_common::transport::RetryClass;
use baler_connector_file::quarantine::{Poison, PutAside, Quarantine};
use baler_connector_testkit::{
    ChunkSource, Label, MemoryLimits, MemoryMedium, Tap, read_label, within_patience,
};
use proptest::prelude::*;

use super::support::{contents, fill, relay, set, soon};
use crate::relay::Relay;

/// An event between two steps of the relay.
#[derive(Debug, Clone)]
enum Event {
    BreakSink,
    Close,
    Consume(usize),
    Hold(bool),
    Kill,
    Refuse(RetryClass),
    Steps(usize),
    Unreachable(bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => Just(Event::BreakSink),
        1 => Just(Event::Close),
        4 => (1_usize..40).prop_map(Event::Consume),
        2 => any::<bool>().prop_map(Event::Hold),
        2 => Just(Event::Kill),
        1 => prop_oneof![Just(RetryClass::Final), Just(RetryClass::Retry)].prop_map(Event::Refuse),
        8 => (1_usize..6).prop_map(Event::Steps),
        2 => any::<bool>().prop_map(Event::Unreachable),
    ]
}

/// The chunks that were put aside.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeSet<Label>>>);

impl Quarantine for Kept {
    fn put_aside(&mut self, poison: Poison<'_>) -> std::io::Result<PutAside> {
        self.0.lock().unwrap().insert(read_label(poison.bytes));
        Ok(PutAside::Kept)
    }
}

fn keeping(from: &MemoryMedium, to: &MemoryMedium, kept: &Kept) -> Relay {
    relay(from, to).with_quarantine(kept.clone())
}

fn step(relay: &mut Relay) {
    relay
        .step(Instant::now() + Duration::from_micros(200))
        .expect("nothing here is final");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_is_acknowledged_at_the_source_is_in_the_sink_or_put_aside(
        events in prop::collection::vec(event(), 1..60),
        capacity in 5_usize..60,
    ) {
        let limits = MemoryLimits {
            capacity_chunks: NonZeroUsize::new(capacity).unwrap(),
            window_chunks: NonZeroUsize::new(8).unwrap(),
            ..MemoryLimits::default()
        };
        let (from, to) = (MemoryMedium::default(), MemoryMedium::new(limits));
        let mut source = ChunkSource::new(1);
        let labels = fill(&from, (0..120).map(|at| source.next(at % 3, 30)).collect());
        let kept = Kept::default();
        let mut relay = keeping(&from, &to, &kept);
        let mut consumer = Tap::new(Box::new(to.reader()));
        let mut refusals = 0;
        for event in events {
            match event {
                Event::BreakSink => to.break_connections(),
                Event::Close => {
                    let report = relay.close(Instant::now() + Duration::from_millis(3));
                    prop_assert!(report.stats.adds_up(), "{report:?}");
                    prop_assert_eq!(report.stats.in_flight, 0);
                    relay = keeping(&from, &to, &kept);
                }
                Event::Consume(chunks) => {
                    for _ in 0..chunks {
                        consumer.poll(Duration::ZERO);
                    }
                }
                Event::Hold(hold) => to.hold_confirmations(hold),
                Event::Kill => {
                    drop(relay);
                    relay = keeping(&from, &to, &kept);
                }
                Event::Refuse(class) => {
                    to.refuse_next(class);
                    refusals += 1;
                }
                Event::Steps(steps) => (0..steps).for_each(|_| step(&mut relay)),
                Event::Unreachable(unreachable) => to.set_unreachable(unreachable),
            }
            // At any moment, a chunk that is no longer at the source has arrived or was put aside.
            let stats = relay.stats();
            prop_assert!(stats.adds_up(), "{stats:?}");
            let safe = consumer.distinct() + to.len() + kept.0.lock().unwrap().len();
            prop_assert!(labels.len() - from.len() <= safe, "{stats:?}");
        }
        to.set_unreachable(false);
        to.hold_confirmations(false);
        within_patience("everything passes in the end", || {
            step(&mut relay);
            while consumer.poll(Duration::ZERO) {}
            from.is_empty().then_some(())
        });
        let stats = relay.close(soon()).stats;
        prop_assert!(stats.adds_up() && stats.in_flight == 0, "{stats:?}");
        while consumer.poll(Duration::ZERO) {}
        let mut all = set(&consumer);
        all.extend(kept.0.lock().unwrap().iter());
        prop_assert_eq!(all, labels);
        prop_assert!(kept.0.lock().unwrap().len() <= refusals);
        if refusals == 0 {
            // A chunk that was refused for now may be overtaken.
            consumer.assert_ordered();
        }
        prop_assert!(contents(&from).received().is_empty());
    }
}
