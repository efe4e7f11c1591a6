//! How much of the latency's bound is left for what comes after a chunk was due.

use std::time::{Duration, Instant};

/// The most that happened lately: waking late, encoding, the medium, its confirmation.
#[derive(Debug)]
pub(super) struct Reserve {
    time: Duration,
    at: Option<Instant>,
    least: Duration,
    most: Duration,
}

/// What happened once is forgotten by half in this time.
const HALF_LIFE: Duration = Duration::from_secs(15);

impl Reserve {
    /// Between an eighth and a half of the bound, at first a quarter: a medium that is slower than
    /// the bound is not made faster by chunks that are smaller.
    pub(super) fn new(max_latency: Duration) -> Self {
        Self {
            time: max_latency / 4,
            at: None,
            least: max_latency / 8,
            most: max_latency / 2,
        }
    }

    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// So long after it was due everything was done with a chunk; half as much more is kept, since the
    /// next may be later.
    pub(super) fn observe(&mut self, late: Duration, now: Instant) {
        let wanted = late.saturating_add(late / 2).clamp(self.least, self.most);
        let since = self.at.replace(now);
        let since = since.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let left = (-since.as_secs_f64() / HALF_LIFE.as_secs_f64()).exp2();
        self.time = self.time.mul_f64(left).max(wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn reserve_is_what_is_late_and_forgets_it_slowly() {
        let mut now = Instant::now();
        let mut reserve = Reserve::new(MS * 160);
        assert_eq!(reserve.time(), MS * 40);
        reserve.observe(MS * 40, now);
        assert_eq!(reserve.time(), MS * 60);
        now += HALF_LIFE;
        reserve.observe(MS, now);
        assert_eq!(reserve.time(), MS * 30);
        now += HALF_LIFE * 10;
        reserve.observe(MS, now);
        assert_eq!(reserve.time(), MS * 20);
    }

    #[test]
    fn half_of_the_bound_is_always_left_for_waiting() {
        let mut reserve = Reserve::new(MS * 160);
        reserve.observe(Duration::from_secs(60), Instant::now());
        assert_eq!(reserve.time(), MS * 80);
    }
}
