//! Chunks pass while nothing breaks.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkReader, ReaderCapability, ReaderCloseReport, Received, Settled, Token, TransportError,
    Verdict,
};
use baler_connector_testkit::{
    ChunkSource, MemoryLimits, MemoryMedium, MemoryReader, within_patience,
};

use super::support::{contents, fill, relay, relay_of, set, soon};
use crate::relay::{Ended, Relay, Step, Stop};

#[test]
fn every_chunk_passes_in_order_with_its_bytes_and_who_it_is() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    let mut source = ChunkSource::new(1);
    let chunks = (0..200).map(|at| source.next(at % 3, 100)).collect();
    let labels = fill(&from, chunks);
    from.end();
    let mut relay = relay(&from, &to);
    assert_eq!(relay.run(Stop::default(), |_| true).unwrap(), Ended::End);
    let report = relay.close(soon());
    let stats = &report.stats;
    assert!(report.error.is_none() && report.source_error.is_none());
    assert_eq!(
        (stats.received, stats.forwarded, stats.in_flight),
        (200, 200, 0)
    );
    assert_eq!(stats.received_bytes, stats.forwarded_bytes);
    assert_eq!(stats.outbox.retries, 0);
    assert!(stats.adds_up());
    // The tap compares bytes and identities.
    let tap = contents(&to);
    assert_eq!(tap.received().len(), 200);
    assert_eq!(set(&tap), labels);
    tap.assert_ordered();
    assert!(from.is_empty());
}

#[test]
fn nothing_is_settled_at_the_source_before_the_sink_has_confirmed() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    fill(&from, ChunkSource::new(1).take(5));
    to.hold_confirmations(true);
    let mut relay = relay(&from, &to);
    within_patience("the chunks are in the sink", || {
        relay
            .step(Instant::now() + Duration::from_millis(5))
            .unwrap();
        (to.len() == 5).then_some(())
    });
    relay
        .step(Instant::now() + Duration::from_millis(5))
        .unwrap();
    assert_eq!(from.len(), 5, "a chunk was settled without a confirmation");
    let stats = relay.stats();
    assert_eq!((stats.in_flight, stats.forwarded), (5, 0));
    to.hold_confirmations(false);
    within_patience("the chunks are settled", || {
        relay
            .step(Instant::now() + Duration::from_millis(5))
            .unwrap();
        from.is_empty().then_some(())
    });
}

#[test]
fn source_is_paused_while_the_sink_takes_nothing() {
    let most = NonZeroUsize::new(4).unwrap();
    let limits = MemoryLimits {
        capacity_chunks: most,
        ..MemoryLimits::default()
    };
    let (from, to) = (MemoryMedium::default(), MemoryMedium::new(limits));
    fill(&from, ChunkSource::new(1).take(100));
    let mut settings = super::support::settings();
    settings.max_chunks = 10;
    let mut relay = Relay::new(Box::new(from.reader()), Box::new(to.writer()), settings);
    within_patience("the sink is full", || {
        relay
            .step(Instant::now() + Duration::from_millis(1))
            .unwrap();
        (relay.received() == 14).then_some(())
    });
    for _ in 0..5 {
        let step = relay
            .step(Instant::now() + Duration::from_millis(1))
            .unwrap();
        assert_eq!(step, Step::Idle);
    }
    assert_eq!((relay.received(), relay.stats().in_flight), (14, 10));
    let mut tap = baler_connector_testkit::Tap::new(Box::new(to.reader()));
    within_patience("the rest passes", || {
        relay
            .step(Instant::now() + Duration::from_millis(1))
            .unwrap();
        while tap.poll(Duration::ZERO) {}
        (tap.received().len() == 100).then_some(())
    });
    tap.assert_ordered();
}

#[test]
fn it_stops_after_the_chunks_it_was_asked_for_and_leaves_the_rest() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    fill(&from, ChunkSource::new(1).take(100));
    let mut relay = relay(&from, &to);
    let stop = Stop {
        chunks: Some(33),
        ..Stop::default()
    };
    assert_eq!(relay.run(stop, |_| true).unwrap(), Ended::Count);
    assert!(relay.close(soon()).stats.adds_up());
    assert_eq!((to.len(), from.len()), (33, 67));
}

#[test]
fn silence_counts_from_the_end_of_the_source() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    fill(&from, ChunkSource::new(1).take(3));
    let joined_at = Instant::now() + Duration::from_millis(300);
    let mut relay = relay_of(
        Joining {
            reader: from.reader(),
            joined_at,
        },
        to.writer(),
    );
    let stop = Stop {
        idle_timeout: Some(Duration::from_millis(10)),
        ..Stop::default()
    };
    let mut waited = false;
    let ended = relay.run(stop, |relay| {
        let waiting = relay.stats().source_waiting;
        waited |= waiting.what() == Some("its part") && waiting.since().is_some();
        true
    });
    assert_eq!(ended.unwrap(), Ended::IdleTimeout);
    assert!(waited, "nobody could see that the source is waited for");
    assert!(relay.stats().source_waiting.since().is_none());
    assert_eq!(to.len(), 3);
}

/// A reader that joins the medium at a given time, and hands out nothing before.
struct Joining {
    reader: MemoryReader,
    joined_at: Instant,
}

impl ChunkReader for Joining {
    fn capability(&self) -> &ReaderCapability {
        self.reader.capability()
    }

    fn set_demand(&mut self, chunks: usize) {
        self.reader.set_demand(chunks);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        if self.waits_for().is_some() {
            let until = by.min(self.joined_at);
            std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
            return Ok(Received::Idle);
        }
        self.reader.receive(by)
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        self.reader.settle(token, verdict)
    }

    fn waits_for(&self) -> Option<&'static str> {
        (Instant::now() < self.joined_at).then_some("its part")
    }

    fn close(self: Box<Self>, by: Instant) -> ReaderCloseReport {
        Box::new(self.reader).close(by)
    }
}

#[test]
fn it_stops_when_nothing_came_for_the_idle_timeout() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    fill(&from, ChunkSource::new(1).take(3));
    let mut relay = relay(&from, &to);
    let stop = Stop {
        idle_timeout: Some(Duration::from_millis(30)),
        ..Stop::default()
    };
    let began = Instant::now();
    assert_eq!(relay.run(stop, |_| true).unwrap(), Ended::IdleTimeout);
    assert!(began.elapsed() >= Duration::from_millis(30));
    assert_eq!(to.len(), 3);
}
