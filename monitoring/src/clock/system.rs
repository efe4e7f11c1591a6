//! The system's wall clock, read through its monotonic clock.
//!
//! Two clocks of the operating system are put together, as in Kieker's `SystemNanoTimer`: the
//! monotonic clock measures durations, which a set wall clock would falsify, and an anchor of the
//! wall clock says when that was.
//! Kieker anchors once, so a clock that drifts or is set stays wrong until the program ends; here
//! the first reading after a second anchors anew.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// How long an anchor holds.
const ANCHOR_NS: i64 = 1_000_000_000;

/// How often an anchor is taken to find one that no preemption has blurred.
const ATTEMPTS: usize = 4;

/// A distance between the two readings of the monotonic clock that needs no further attempt.
const SHARP_NS: i64 = 1_000;

static SYSTEM: LazyLock<Anchored> = LazyLock::new(Anchored::new);

/// The time in nanoseconds since the Unix epoch: one reading of the monotonic clock.
///
/// It follows the wall clock with a delay of up to a second, also when that is set back; who takes
/// a difference of two readings must saturate it at zero.
#[inline]
pub(super) fn unix_ns() -> i64 {
    SYSTEM.unix_ns()
}

#[derive(Debug)]
struct Anchored {
    origin: Instant,
    /// Wall clock less monotonic clock, the latter counted from the origin.
    offset: AtomicI64,
    /// When, by the monotonic clock, the offset is to be checked.
    until: AtomicI64,
}

/// The wall clock between two readings of the monotonic clock.
#[derive(Debug, Clone, Copy)]
struct Sample {
    before: i64,
    wall: i64,
    after: i64,
}

impl Anchored {
    fn new() -> Self {
        let anchored = Self {
            origin: Instant::now(),
            offset: AtomicI64::new(0),
            until: AtomicI64::new(0),
        };
        anchored.anchor(0);
        anchored
    }

    #[inline]
    fn unix_ns(&self) -> i64 {
        let monotonic = self.monotonic();
        let until = self.until.load(Ordering::Relaxed);
        if monotonic >= until {
            self.anchor(until);
        }
        self.offset
            .load(Ordering::Relaxed)
            .saturating_add(monotonic)
    }

    /// Checks the offset, unless another thread is doing it.
    #[cold]
    fn anchor(&self, until: i64) {
        let next = self.monotonic().saturating_add(ANCHOR_NS);
        let is_ours = self
            .until
            .compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if !is_ours {
            return;
        }
        let mut best = self.sample();
        for _ in 1..ATTEMPTS {
            if best.blur() <= SHARP_NS {
                break;
            }
            let another = self.sample();
            if another.blur() < best.blur() {
                best = another;
            }
        }
        let offset = self.offset.load(Ordering::Relaxed);
        self.offset.store(best.correct(offset), Ordering::Relaxed);
    }

    fn sample(&self) -> Sample {
        Sample {
            before: self.monotonic(),
            wall: wall_unix_ns(),
            after: self.monotonic(),
        }
    }

    #[inline]
    fn monotonic(&self) -> i64 {
        i64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
}

impl Sample {
    fn blur(self) -> i64 {
        self.after.saturating_sub(self.before)
    }

    /// The offset that this sample asks for: the one given, as long as the sample does not
    /// contradict it, so that times do not jitter by the error of a measurement.
    fn correct(self, offset: i64) -> i64 {
        let lowest = self.wall.saturating_sub(self.after);
        let highest = self.wall.saturating_sub(self.before);
        offset.clamp(lowest, highest.max(lowest))
    }
}

/// The wall clock; a time outside of what an `i64` holds (1677 to 2262) becomes the nearest one.
pub(super) fn wall_unix_ns() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, i64::wrapping_neg)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far more than two readings are apart, far less than what is tested.
    const TOLERANCE_NS: i64 = 100_000_000;

    #[test]
    fn time_is_that_of_the_wall_clock() {
        let difference = unix_ns() - wall_unix_ns();
        assert!(difference.abs() < TOLERANCE_NS, "{difference} ns");
    }

    #[test]
    fn a_set_clock_is_followed_when_the_anchor_is_old() {
        let clock = Anchored::new();
        // As if the wall clock had been set forward by an hour since.
        let hour = 3_600_000_000_000;
        clock.offset.fetch_sub(hour, Ordering::Relaxed);
        assert!(clock.unix_ns() - wall_unix_ns() < -hour + TOLERANCE_NS);
        clock.until.store(0, Ordering::Relaxed);
        let difference = clock.unix_ns() - wall_unix_ns();
        assert!(difference.abs() < TOLERANCE_NS, "{difference} ns");
        assert!(clock.until.load(Ordering::Relaxed) > ANCHOR_NS);
    }

    #[test]
    fn an_offset_changes_only_as_far_as_a_sample_contradicts_it() {
        let sample = Sample {
            before: 100,
            wall: 1_000,
            after: 140,
        };
        assert_eq!(sample.correct(880), 880);
        assert_eq!(sample.correct(100), 860);
        assert_eq!(sample.correct(5_000), 900);
    }
}
