//! The time of records, and a clock that tests set by hand.

mod mapping;
mod system;
pub(crate) mod ticks;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

pub(crate) use mapping::TickMapping;
#[cfg(feature = "enable")]
pub(crate) use mapping::nanoseconds;

/// Where a controller takes the time of records from.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Clock {
    /// The processor's own counter, where it can be trusted as a clock, else as [`Self::System`];
    /// [`source`](Self::source) says which it is. The default: a probe reads the clock twice, and
    /// reading the counter takes less than half the time of asking the operating system.
    ///
    /// It is used on x86-64 with Linux if that takes its own time from the counter
    /// (`current_clocksource` is `tsc`, and the processor has `constant_tsc` and `nonstop_tsc`).
    /// The collector converts its ticks, and follows a wall clock that is set, also back, within a
    /// second.
    #[default]
    Ticks,
    /// The operating system's wall clock, read through its monotonic clock.
    ///
    /// It follows a wall clock that is set, also back, within a second.
    System,
    /// A clock that stands still until a test moves it.
    Test(TestClock),
}

/// What a clock is read from, in the two lowest bits of a key (see [`Clock::key`]).
const TICKS: u64 = 1;
const SYSTEM: u64 = 2;

impl Clock {
    /// The time in nanoseconds since the Unix epoch.
    pub fn unix_ns(&self) -> i64 {
        match self {
            Self::Ticks | Self::System => system::unix_ns(),
            Self::Test(clock) => clock.unix_ns(),
        }
    }

    /// What it is read from on this machine: `tsc`, `system` or `test`.
    pub fn source(&self) -> &'static str {
        match self {
            Self::Ticks if ticks::is_available() => "tsc",
            Self::Ticks | Self::System => "system",
            Self::Test(_) => "test",
        }
    }

    /// A new key, by which threads know a controller's queues and its kind of clock at once.
    pub(crate) fn key(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let source = match self {
            Self::Ticks if ticks::is_available() => TICKS,
            Self::Ticks | Self::System => SYSTEM,
            Self::Test(_) => 0,
        };
        (NEXT.fetch_add(1, Ordering::Relaxed) << 2) | source
    }
}

/// Whether records in the queues with this key are timed in ticks.
#[inline]
pub(crate) const fn is_in_ticks(key: u64) -> bool {
    key & TICKS != 0
}

/// Whether records in the queues with this key are timed by the operating system.
#[cfg(feature = "enable")]
#[inline]
pub(crate) const fn is_in_system_time(key: u64) -> bool {
    key & SYSTEM != 0
}

/// Now, by the operating system, in nanoseconds since the Unix epoch.
#[cfg(feature = "enable")]
pub(crate) fn system_unix_ns() -> i64 {
    system::unix_ns()
}

/// A clock that stands still until a test moves it; its clones move with it.
#[derive(Debug, Clone, Default)]
pub struct TestClock {
    unix_ns: Arc<AtomicI64>,
}

impl TestClock {
    /// A clock that shows this time, in nanoseconds since the Unix epoch.
    pub fn new(unix_ns: i64) -> Self {
        Self {
            unix_ns: Arc::new(AtomicI64::new(unix_ns)),
        }
    }

    /// The time in nanoseconds since the Unix epoch.
    pub fn unix_ns(&self) -> i64 {
        self.unix_ns.load(Ordering::Relaxed)
    }

    /// Sets the time, in nanoseconds since the Unix epoch.
    pub fn set(&self, unix_ns: i64) {
        self.unix_ns.store(unix_ns, Ordering::Relaxed);
    }

    /// Moves the time by so many nanoseconds.
    pub fn advance(&self, nanoseconds: i64) {
        self.unix_ns.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// Now, for deadlines: it never jumps.
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_test_clock_move_together() {
        let test = TestClock::new(5);
        let clock = Clock::Test(test.clone());
        assert_eq!(clock.unix_ns(), 5);
        test.advance(10);
        assert_eq!(clock.unix_ns(), 15);
    }
}
