//! How many records come a second.

use std::time::{Duration, Instant};

/// A moving average of a rate. Each observation moves it at least half of the way, and further after a
/// longer time. Observations are closer together when more records come.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: f64,
    /// Number of records and time at the last observation.
    since: (u64, Instant),
}

/// An observation of this length counts as much as all before it.
const MEMORY: Duration = Duration::from_millis(50);

impl Rate {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            per_second: 0.0,
            since: (0, now),
        }
    }

    pub(super) fn per_second(&self) -> f64 {
        self.per_second
    }

    /// The time in which this number of records arrives; for ever at a rate of 0.
    pub(super) fn time_for(&self, records: f64) -> Duration {
        let seconds = records / self.per_second.max(f64::MIN_POSITIVE);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// `taken` records have come so far. That counts once `enough` time has passed since the last time,
    /// or `many` records have come: a look that finds three says nothing about a second.
    pub(super) fn observe(&mut self, taken: u64, now: Instant, enough: Duration, many: usize) {
        let (before, since) = self.since;
        let time = now.saturating_duration_since(since);
        let records = taken.saturating_sub(before);
        let are_many = usize::try_from(records).is_ok_and(|records| records >= many);
        if time.is_zero() || (time < enough && !are_many) {
            return;
        }
        self.since = (taken, now);
        #[expect(
            clippy::cast_precision_loss,
            reason = "records of some seconds are below 2^53"
        )]
        let rate = records as f64 / time.as_secs_f64();
        let weight = time.as_secs_f64() / (time + MEMORY).as_secs_f64();
        self.per_second += (rate - self.per_second) * weight.max(0.5);
    }
}

#[cfg(test)]
mod tests;
