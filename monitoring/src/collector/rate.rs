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
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_millis(10);

    fn after(rate: &mut Rate, at: &mut (u64, Instant), time: Duration, records: u64) -> f64 {
        *at = (at.0 + records, at.1 + time);
        rate.observe(at.0, at.1, LOOK / 2, 1_000);
        rate.per_second()
    }

    #[test]
    fn rate_is_followed_by_half_with_each_look() {
        let mut at = (0, Instant::now());
        let mut rate = Rate::new(at.1);
        for _ in 0..20 {
            after(&mut rate, &mut at, LOOK, 1);
        }
        assert!((rate.per_second() - 100.0).abs() < 1e-3);
        let up = after(&mut rate, &mut at, LOOK, 10_000);
        assert!((up - 500_050.0).abs() < 1.0, "{up}");
        let down = after(&mut rate, &mut at, LOOK, 1);
        assert!((down - 250_075.0).abs() < 1.0, "{down}");
        // After a second's silence little is left of it.
        let silent = after(&mut rate, &mut at, Duration::from_secs(1), 0);
        assert!(silent < down / 20.0, "{silent}");
    }

    #[test]
    fn few_records_in_a_short_time_say_nothing() {
        let mut at = (0, Instant::now());
        let mut rate = Rate::new(at.1);
        assert!(after(&mut rate, &mut at, Duration::from_micros(10), 3) < 1e-9);
        // They count with those that come later.
        let both = after(&mut rate, &mut at, Duration::from_micros(9_990), 7);
        assert!((both - 500.0).abs() < 1e-6, "{both}");
        let many = after(&mut rate, &mut at, Duration::from_millis(1), 1_000);
        assert!((many - 500_250.0).abs() < 1.0, "{many}");
    }
}
