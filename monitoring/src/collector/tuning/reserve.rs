//! How much of the latency's bound is left for what comes after a chunk was due.

use std::time::{Duration, Instant};

/// The most that happened lately: waking late, encoding, the medium, its confirmation.
#[derive(Debug)]
pub(super) struct Reserve {
    /// What is taken for the medium's while little is known of it.
    guess: Duration,
    seen: Duration,
    at: Option<Instant>,
    least: Duration,
    most: Duration,
}

/// What happened once is forgotten by half in this time.
const HALF_LIFE: Duration = Duration::from_secs(15);

impl Reserve {
    /// Between a sixteenth and a half of the bound, at first a quarter: a medium that is slower than
    /// the bound is not made faster by chunks that are smaller.
    pub(super) fn new(max_latency: Duration) -> Self {
        Self {
            guess: max_latency / 4,
            seen: Duration::ZERO,
            at: None,
            least: max_latency / 16,
            most: max_latency / 2,
        }
    }

    pub(super) fn time(&self) -> Duration {
        self.seen.max(self.guess).clamp(self.least, self.most)
    }

    /// A chunk was made `late` after it was due. Called for every chunk: its lateness is known before its
    /// medium has confirmed it.
    pub(super) fn made(&mut self, late: Duration, now: Instant) {
        let since = self.at.replace(now);
        let since = since.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let left = (-since.as_secs_f64() / HALF_LIFE.as_secs_f64()).exp2();
        self.seen = self.seen.mul_f64(left).max(late.min(self.most));
    }

    /// A chunk was confirmed, or given up, `late` after it was due. Called for few chunks: half as much
    /// more is kept, since others may be later. The guess counts the less the more of them there were.
    pub(super) fn settled(&mut self, late: Duration, now: Instant) {
        self.made(late.saturating_add(late / 2), now);
        self.guess /= 2;
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
        reserve.settled(MS * 40, now);
        assert_eq!(reserve.time(), MS * 60);
        now += HALF_LIFE;
        reserve.settled(MS, now);
        assert_eq!(reserve.time(), MS * 30);
        now += HALF_LIFE * 10;
        reserve.settled(MS, now);
        assert_eq!(reserve.time(), MS * 10);
    }

    #[test]
    fn a_guess_gives_way_to_what_is_known_of_the_medium() {
        let now = Instant::now();
        let mut reserve = Reserve::new(MS * 160);
        // That chunks are made in time says nothing of the medium.
        reserve.made(MS, now);
        assert_eq!(reserve.time(), MS * 40);
        reserve.settled(MS * 2, now);
        assert_eq!(reserve.time(), MS * 20);
        reserve.settled(MS * 2, now);
        assert_eq!(reserve.time(), MS * 10);
        // And lateness is known at once.
        reserve.made(MS * 12, now);
        assert_eq!(reserve.time(), MS * 12);
        reserve.settled(MS * 20, now);
        assert_eq!(reserve.time(), MS * 30);
    }

    #[test]
    fn half_of_the_bound_is_always_left_for_waiting() {
        let mut reserve = Reserve::new(MS * 160);
        reserve.settled(Duration::from_secs(60), Instant::now());
        assert_eq!(reserve.time(), MS * 80);
    }
}
