//! How often the fate of a chunk is waited for, to know how long its medium takes.

use std::time::{Duration, Instant};

/// The next sample is due the later the more of them came as they were expected: a writer whose owner
/// waits for a fate wakes the collector for it, which at low rates costs a third of what a chunk does.
#[derive(Debug)]
pub(super) struct Samples {
    /// When the last one was begun.
    begun: Option<Instant>,
    every: Duration,
}

/// At first, and after something was late, a sample is due so long after the one before, ...
const SOONEST: Duration = Duration::from_millis(200);

/// ... and in the end so long: a medium that becomes slow is noticed within a second.
const LATEST: Duration = Duration::from_millis(800);

impl Samples {
    pub(super) fn new() -> Self {
        Self {
            begun: None,
            every: SOONEST,
        }
    }

    /// Whether a chunk that was made now is one.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        let is_due = self
            .begun
            .is_none_or(|begun| now.saturating_duration_since(begun) >= self.every);
        if is_due {
            self.begun = Some(now);
        }
        is_due
    }

    /// It came so late, where so much was reserved: half as much more as the latest one took that is
    /// remembered, less what was forgotten of it.
    pub(super) fn end(&mut self, late: Duration, reserve: Duration) {
        if late > reserve * 4 / 5 {
            self.hurry();
        } else {
            self.every = (self.every * 2).min(LATEST);
        }
    }

    /// Something may be late.
    pub(super) fn hurry(&mut self) {
        self.every = SOONEST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// How long it takes until another one begins.
    fn next(samples: &mut Samples, now: &mut Instant) -> Duration {
        let before = *now;
        while !samples.begin(*now) {
            *now += MS * 10;
        }
        *now - before
    }

    #[test]
    fn samples_become_rare_while_none_is_late_and_frequent_when_one_is() {
        let mut now = Instant::now();
        let mut samples = Samples::new();
        assert!(samples.begin(now));
        assert_eq!(next(&mut samples, &mut now), SOONEST);
        let reserve = MS * 10;
        for expected in [400, 800, 800] {
            samples.end(MS * 8, reserve);
            assert_eq!(next(&mut samples, &mut now), MS * expected);
        }
        samples.end(MS * 9, reserve);
        assert_eq!(next(&mut samples, &mut now), SOONEST);
        samples.end(MS, reserve);
        samples.hurry();
        assert_eq!(next(&mut samples, &mut now), SOONEST);
    }
}
