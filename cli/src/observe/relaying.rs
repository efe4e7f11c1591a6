//! The figures of a relay: what came from its source, and the outbox in front of its target.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use baler_relay::RelayStats;

use super::exposition::Exposition;
use super::health::{Check, Limits};
use super::metric;
use super::observed::Observable;
use super::receiving::{reader, reader_check};
use super::sending::{outbox, writer_checks};

/// The figures as the relay last told them, for other threads. Cloning shares.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown(Arc<Mutex<RelayStats>>);

impl Shown {
    /// Replaces them.
    pub(crate) fn show(&self, stats: RelayStats) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }

    fn stats(&self) -> RelayStats {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Observable for Shown {
    fn expose(&self, exposition: &mut Exposition, now: Instant) {
        let stats = self.stats();
        // One source, as the only worker.
        let one = &["0"];
        exposition.set(&metric::CHUNKS_RECEIVED, one, stats.received);
        exposition.set(&metric::RECEIVED_BYTES, one, stats.received_bytes);
        exposition.set(&metric::CHUNKS_GIVEN_BACK, one, stats.given_back);
        let aside = stats.quarantined.saturating_add(stats.damaged);
        exposition.set(&metric::CHUNKS_QUARANTINED, one, aside);
        let settled = stats.forwarded.saturating_add(stats.spooled);
        exposition.set(&metric::CHUNKS_ACKNOWLEDGED, one, settled);
        exposition.set(&metric::CHUNKS_IN_WORK, one, stats.in_flight);
        exposition.set(&metric::CHUNKS_REDELIVERED, one, stats.redelivered);
        exposition.set(&metric::SETTLEMENTS_STALE, one, stats.stale);
        exposition.set(&metric::READER_ERRORS, one, stats.source_errors);
        reader("0", &stats.source, exposition);
        exposition.set(&metric::CHUNKS_CONFIRMED, &[], stats.forwarded);
        exposition.set(&metric::CONFIRMED_BYTES, &[], stats.forwarded_bytes);
        outbox(&stats.outbox, exposition, now);
    }

    fn lag(&self) -> Option<u64> {
        self.stats().source.total_lag()
    }

    fn chunks_left(&self) -> u64 {
        self.stats().in_flight
    }

    fn checks(&self, limits: Limits, now: Instant) -> Vec<Check> {
        let stats = self.stats();
        let mut checks = writer_checks(&stats.outbox, limits, now);
        checks.push(reader_check("0", &stats.source));
        checks
    }
}
