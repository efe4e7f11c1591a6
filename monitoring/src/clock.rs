//! The time of records, and a clock that tests set by hand.

mod mapping;
mod system;
pub(crate) mod ticks;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[cfg(unix)]
pub(crate) use mapping::forget_published;
use mapping::published_unix_ns;
pub(crate) use mapping::{TickMapping, nanoseconds, nanoseconds_a_tick};
pub(crate) use system::system_unix_ns;

/// The source of the time of records.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Clock {
    /// The processor's own counter if it can be trusted as a clock, otherwise as [`Self::System`].
    /// [`source`](Self::source) returns the one in use. This is the default: a probe reads the
    /// clock twice, and reading the counter takes less than half the time of asking the operating
    /// system.
    ///
    /// On Linux it is used if the kernel takes its own time from the counter: on x86-64
    /// `current_clocksource` is `tsc`, and the processor has `constant_tsc` and `nonstop_tsc`; on
    /// AArch64 it is `arch_sys_counter`. The collector converts its ticks. If the wall clock is
    /// set, even back, the conversion follows within a second.
    #[default]
    Ticks,
    /// The operating system's wall clock.
    ///
    /// A call during which the wall clock is set gets a wrong duration, but never a negative one.
    System,
    /// A clock that stands still until a test moves it.
    Test(TestClock),
}

/// The source of the time, in two bits of a key (see [`Clock::key`]).
const TICKS: u64 = 1 << 32;
const SYSTEM: u64 = 1 << 33;

/// The number of bits in the lower half of a key that count keys, beside [`TAG`]. Higher bits of
/// the count are above the bits of the clock.
const COUNTED: u32 = 30;

impl Clock {
    /// Returns the time in nanoseconds since the Unix epoch.
    ///
    /// [`Self::Ticks`] converts the counter as a collector did last. Without one it asks the
    /// operating system.
    #[inline]
    pub fn unix_ns(&self) -> i64 {
        match self {
            Self::Ticks if ticks::is_available() => {
                published_unix_ns(ticks::read()).unwrap_or_else(system_unix_ns)
            }
            Self::Ticks | Self::System => system_unix_ns(),
            Self::Test(clock) => clock.unix_ns(),
        }
    }

    /// Returns its source on this machine: `tsc` or `cntvct` (the counters of x86-64 and AArch64),
    /// `system` or `test`.
    pub fn source(&self) -> &'static str {
        match self {
            Self::Ticks if ticks::is_available() => ticks::NAME,
            Self::Ticks | Self::System => "system",
            Self::Test(_) => "test",
        }
    }

    /// Returns a new key. Threads recognise a controller's queues and its kind of clock by it.
    pub(crate) fn key(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let source = match self {
            Self::Ticks if ticks::is_available() => TICKS,
            Self::Ticks | Self::System => SYSTEM,
            Self::Test(_) => 0,
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (above, below) = (number >> COUNTED, number & ((1 << COUNTED) - 1));
        (above << 34) | source | u64::from(TAG) | below
    }
}

/// Whether records in the queues with this key are timed in ticks.
#[inline]
pub(crate) const fn is_in_ticks(key: u64) -> bool {
    key & TICKS != 0
}

/// This bit marks a time in nanoseconds since the Unix epoch in a row's word. Other times are
/// ticks; a processor does not count to this bit in a century.
const UNIX_NS: u64 = 1 << 63;

/// Marks a time in nanoseconds since the Unix epoch, for a row's word.
#[inline]
pub(crate) const fn marked(unix_ns: i64) -> u64 {
    (unix_ns as u64) | UNIX_NS
}

/// Returns the time in nanoseconds since the Unix epoch in a row's word; `None` if it is in ticks.
///
/// The mark takes one bit, so only times from 1823 to 2116 fit.
#[inline]
pub(crate) const fn unmarked(time: u64) -> Option<i64> {
    if time & UNIX_NS == 0 {
        return None;
    }
    Some(((time << 1) as i64) >> 1)
}

/// Returns the tag by which call sites know the queues with this key: [`short_of`], with
/// [`NOT_IN_TICKS`] set if their records are not timed in ticks. As a signed number it is then
/// negative.
#[inline]
pub(crate) const fn tag_of(key: u64) -> u32 {
    if is_in_ticks(key) {
        short_of(key)
    } else {
        NOT_IN_TICKS | short_of(key)
    }
}

/// Returns the half word by which threads know the queues with this key. Two keys share one only
/// after a billion controllers in one process. It is neither 0 nor negative as a signed number.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the lowest bits are what is wanted"
)]
pub(crate) const fn short_of(key: u64) -> u32 {
    key as u32
}

/// Set in every tag.
const TAG: u32 = 1 << COUNTED;

/// The highest bit, set in tags of queues whose records are not timed in ticks.
pub(crate) const NOT_IN_TICKS: u32 = 1 << 31;

/// Whether the queues with this key use the operating system's time.
#[inline]
pub(crate) const fn has_wall_time(key: u64) -> bool {
    key & (TICKS | SYSTEM) != 0
}

/// A clock that stands still until a test moves it; its clones move with it.
#[derive(Debug, Clone, Default)]
pub struct TestClock {
    unix_ns: Arc<AtomicI64>,
}

impl TestClock {
    /// Creates a clock that shows this time, in nanoseconds since the Unix epoch.
    pub fn new(unix_ns: i64) -> Self {
        Self {
            unix_ns: Arc::new(AtomicI64::new(unix_ns)),
        }
    }

    /// Returns the time in nanoseconds since the Unix epoch.
    pub fn unix_ns(&self) -> i64 {
        self.unix_ns.load(Ordering::Relaxed)
    }

    /// Sets the time, in nanoseconds since the Unix epoch.
    pub fn set(&self, unix_ns: i64) {
        self.unix_ns.store(unix_ns, Ordering::Relaxed);
    }

    /// Moves the time by this number of nanoseconds.
    pub fn advance(&self, nanoseconds: i64) {
        self.unix_ns.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// Returns the present time for deadlines. This clock never jumps.
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

/// Returns the time until this deadline; zero if it is past.
pub(crate) fn time_left(by: Instant) -> Duration {
    by.saturating_duration_since(monotonic())
}

#[cfg(test)]
mod tests;
