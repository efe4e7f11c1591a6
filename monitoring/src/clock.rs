//! The time of records, and a clock that tests set by hand.

mod system;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// Where a controller takes the time of records from.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Clock {
    /// The operating system's wall clock, read through its monotonic clock.
    ///
    /// It follows a wall clock that is set, also back, within a second.
    #[default]
    System,
    /// A clock that stands still until a test moves it.
    Test(TestClock),
}

impl Clock {
    /// The time in nanoseconds since the Unix epoch.
    pub fn unix_ns(&self) -> i64 {
        match self {
            Self::System => system::unix_ns(),
            Self::Test(clock) => clock.unix_ns(),
        }
    }
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
