//! When a sampler is due.

use std::time::{Duration, Instant};

/// Points in time at a fixed distance, whatever happens in between.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    next: Instant,
    period: Duration,
}

impl Schedule {
    /// Due at once, and then after each period.
    pub(super) const fn new(start: Instant, period: Duration) -> Self {
        Self {
            next: start,
            period,
        }
    }

    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// Goes on to the first point that is still to come; how many others were missed.
    ///
    /// `None` when that is beyond what an instant can hold.
    pub(super) fn advance(&mut self, now: Instant) -> Option<u64> {
        let late = now.saturating_duration_since(self.next).as_nanos();
        let missed = late.checked_div(self.period.as_nanos())?;
        let missed = u32::try_from(missed).ok()?;
        let step = self.period.checked_mul(missed.checked_add(1)?)?;
        self.next = self.next.checked_add(step)?;
        Some(u64::from(missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_do_not_drift_and_missed_ones_are_counted() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut schedule = Schedule::new(start, Duration::from_millis(100));
        assert_eq!(schedule.next(), start);
        // A little late each time.
        for (now, next, missed) in [(7, 100, 0), (150, 200, 0), (200, 300, 0), (655, 700, 3)] {
            assert_eq!(schedule.advance(at(now)), Some(missed), "{now}");
            assert_eq!(schedule.next(), at(next));
        }
        // Asked early, it still goes on by one.
        assert_eq!(schedule.advance(at(650)), Some(0));
        assert_eq!(schedule.next(), at(800));
        let mut never = Schedule::new(start, Duration::MAX);
        assert_eq!(never.advance(start), None);
    }
}
