//! The time of records, and a clock that tests set by hand.

mod mapping;
pub(crate) mod ticks;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub(crate) use mapping::{TickMapping, nanoseconds, nanoseconds_a_tick};

/// Where a controller takes the time of records from.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Clock {
    /// The processor's own counter, where it can be trusted as a clock, else as [`Self::System`];
    /// [`source`](Self::source) says which it is. The default: a probe reads the clock twice, and
    /// reading the counter takes less than half the time of asking the operating system.
    ///
    /// It is used with Linux if that takes its own time from the counter: on x86-64
    /// `current_clocksource` is `tsc`, and the processor has `constant_tsc` and `nonstop_tsc`; on
    /// AArch64 it is `arch_sys_counter`.
    /// The collector converts its ticks, and follows a wall clock that is set, also back, within a
    /// second.
    #[default]
    Ticks,
    /// The operating system's wall clock.
    ///
    /// A call during which the wall clock is set has a wrong duration, but never a negative one.
    System,
    /// A clock that stands still until a test moves it.
    Test(TestClock),
}

/// What a clock is read from, in two bits of a key (see [`Clock::key`]).
const TICKS: u64 = 1 << 32;
const SYSTEM: u64 = 1 << 33;

/// How many bits of the lower half of a key count keys, beside [`TAG`]; the further bits of the count are
/// above those of the clock.
const COUNTED: u32 = 30;

impl Clock {
    /// The time in nanoseconds since the Unix epoch.
    pub fn unix_ns(&self) -> i64 {
        match self {
            Self::Ticks | Self::System => system_unix_ns(),
            Self::Test(clock) => clock.unix_ns(),
        }
    }

    /// What it is read from on this machine: `tsc` or `cntvct` (the counters of x86-64 and AArch64),
    /// `system` or `test`.
    pub fn source(&self) -> &'static str {
        match self {
            Self::Ticks if ticks::is_available() => ticks::NAME,
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

/// Set in the words of a row for a time that is in nanoseconds since the Unix epoch; others are
/// ticks, and a processor does not count to this bit in a century.
const UNIX_NS: u64 = 1 << 63;

/// A time in nanoseconds since the Unix epoch, as a row's word has it.
#[inline]
pub(crate) const fn marked(unix_ns: i64) -> u64 {
    (unix_ns as u64) | UNIX_NS
}

/// The time in nanoseconds since the Unix epoch in a row's word; `None` if it is in ticks.
///
/// One bit is lost to the mark: times are those from 1823 to 2116.
#[inline]
pub(crate) const fn unmarked(time: u64) -> Option<i64> {
    if time & UNIX_NS == 0 {
        return None;
    }
    Some(((time << 1) as i64) >> 1)
}

/// By which call sites know the queues with this key: [`short_of`], and negative as a signed number
/// ([`NOT_IN_TICKS`]) if their records are not timed in ticks.
#[inline]
pub(crate) const fn tag_of(key: u64) -> u32 {
    if is_in_ticks(key) {
        short_of(key)
    } else {
        NOT_IN_TICKS | short_of(key)
    }
}

/// By which threads know the queues with this key, in half of a word: equal for two keys only after
/// a billion controllers in one process. Neither 0 nor negative as a signed number.
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

/// Whether the clock of the queues with this key shows the time of the operating system.
#[inline]
pub(crate) const fn has_wall_time(key: u64) -> bool {
    key & (TICKS | SYSTEM) != 0
}

/// Now, by the operating system, in nanoseconds since the Unix epoch. A time outside the range of an
/// `i64` (1677 to 2262) becomes the nearest one.
pub(crate) fn system_unix_ns() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, i64::wrapping_neg)
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

    /// Moves the time by this number of nanoseconds.
    pub fn advance(&self, nanoseconds: i64) {
        self.unix_ns.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// Now, for deadlines: it never jumps.
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
