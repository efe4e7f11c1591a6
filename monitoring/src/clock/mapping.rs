//! Converts the processor's counter to nanoseconds since the Unix epoch.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use super::system::system_unix_ns;
use super::ticks;

/// How long an anchor is used.
const ANCHOR: Duration = Duration::from_secs(1);

/// The time over which the counter's rate is measured. It is long enough to make the error of a
/// reading negligible, and short enough to follow the adjusted rate of the wall clock.
const RATE: Duration = Duration::from_secs(16);

/// The shortest time over which the rate is measured. One reading is at most 100 ns off, so this
/// first rate is off by at most one in 20,000.
const LEAST_RATE: Duration = Duration::from_millis(2);

/// The number of attempts to get a reading without a preemption in between.
const ATTEMPTS: usize = 4;

/// A reading that took at most this number of ticks needs no further attempt.
const SHARP_TICKS: u64 = 1_000;

/// A rate is given in 2^-32 nanoseconds.
const SHIFT: u32 = 32;

/// The application's threads use no anchor that is older, in nanoseconds. A collector that waits or
/// a machine that sleeps does not renew it.
const MAX_AGE_NS: u64 = 2_000_000_000;

/// The mapping that a collector made last, for the application's threads.
static PUBLISHED: PublishedMapping = PublishedMapping {
    version: AtomicU64::new(0),
    anchor_ticks: AtomicU64::new(0),
    anchor_unix_ns: AtomicI64::new(0),
    multiplier: AtomicU64::new(0),
};

/// A mapping that one thread writes while others read it, without a lock (a "seqlock").
struct PublishedMapping {
    /// Odd while a thread writes.
    version: AtomicU64,
    anchor_ticks: AtomicU64,
    anchor_unix_ns: AtomicI64,
    /// 0 if there is no mapping yet.
    multiplier: AtomicU64,
}

/// Returns the time at which the counter showed this number, for the application's threads. `None`
/// if no collector has a fresh mapping.
#[inline]
pub(crate) fn published_unix_ns(ticks: u64) -> Option<i64> {
    let version = PUBLISHED.version.load(Ordering::Acquire);
    let anchor_ticks = PUBLISHED.anchor_ticks.load(Ordering::Relaxed);
    let anchor_unix_ns = PUBLISHED.anchor_unix_ns.load(Ordering::Relaxed);
    let multiplier = PUBLISHED.multiplier.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    let is_whole = version % 2 == 0 && PUBLISHED.version.load(Ordering::Relaxed) == version;
    // As `scaled`, but signed: the counter may have been read before the anchor.
    let ticks = i128::from(ticks.wrapping_sub(anchor_ticks) as i64);
    let distance = ticks.wrapping_mul(i128::from(multiplier as i64)) >> SHIFT;
    let distance = i64::try_from(distance).ok()?;
    if !is_whole || multiplier == 0 || distance.unsigned_abs() > MAX_AGE_NS {
        return None;
    }
    Some(anchor_unix_ns.wrapping_add(distance))
}

/// In the child of a fork: the parent may have been writing the mapping.
#[cfg(unix)]
pub(crate) fn forget_published() {
    PUBLISHED.multiplier.store(0, Ordering::Relaxed);
    PUBLISHED.version.store(0, Ordering::Relaxed);
}

/// Converts ticks to nanoseconds for the application's threads, as exactly as the collector knows
/// the rate.
#[inline]
pub(crate) fn nanoseconds(ticks: u64) -> u64 {
    let multiplier = match PUBLISHED.multiplier.load(Ordering::Relaxed) {
        0 => measure(),
        multiplier => multiplier,
    };
    scaled(ticks, multiplier)
}

/// Converts ticks to nanoseconds. The product of two words never overflows.
#[inline(always)]
fn scaled(ticks: u64, multiplier: u64) -> u64 {
    let shifted = u128::from(ticks).wrapping_mul(u128::from(multiplier)) >> SHIFT;
    u64::try_from(shifted).unwrap_or(u64::MAX)
}

/// Returns the nanoseconds of one tick.
#[expect(
    clippy::cast_precision_loss,
    reason = "the rate is not known as well as that"
)]
pub(crate) fn nanoseconds_a_tick() -> f64 {
    let multiplier = match PUBLISHED.multiplier.load(Ordering::Relaxed) {
        0 => measure(),
        multiplier => multiplier,
    };
    multiplier as f64 / (1_u64 << SHIFT) as f64
}

/// For a thread that needs the rate before the collector's first round.
#[cold]
fn measure() -> u64 {
    let mut mapping = TickMapping::new();
    mapping.refresh(Instant::now());
    mapping.multiplier
}

/// Maps ticks to nanoseconds by an anchor, a multiplier and a shift, for the collector.
///
/// It gets a new anchor every second, so it follows a wall clock that is set, even back. Both ends
/// of a call use the same anchor and rate, so no duration is negative or contains a jump.
#[derive(Debug)]
pub(crate) struct TickMapping {
    anchor_ticks: u64,
    anchor_unix_ns: i64,
    /// Nanoseconds a tick, shifted.
    multiplier: u64,
    /// The reading from which the rate is measured, and its successor when that one is too old.
    from: Reading,
    later: Reading,
    anchored: Instant,
}

/// Three clocks at one time.
#[derive(Debug, Clone, Copy)]
struct Reading {
    ticks: u64,
    monotonic: Instant,
    unix_ns: i64,
    /// How many ticks the reading took.
    blur: u64,
}

impl TickMapping {
    /// Creates a mapping. It is exact after [`refresh`](Self::refresh), and becomes more exact with
    /// each later one.
    pub(crate) fn new() -> Self {
        let reading = Reading::take();
        Self {
            anchor_ticks: reading.ticks,
            anchor_unix_ns: reading.unix_ns,
            multiplier: 0,
            from: reading,
            later: reading,
            anchored: reading.monotonic,
        }
    }

    /// Renews the anchor if it is old. Call it before ticks are mapped, but rarely enough that the
    /// cost of reading three clocks does not matter. The first call may wait for two milliseconds.
    pub(crate) fn refresh(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.anchored);
        let is_young = self.anchored.duration_since(self.from.monotonic) < ANCHOR;
        if self.multiplier != 0 && age < ANCHOR && !(is_young && age >= LEAST_RATE) {
            return;
        }
        // Do not park here: the collector would miss wake-ups.
        while self.multiplier == 0 && self.from.monotonic.elapsed() < LEAST_RATE {
            thread::yield_now();
        }
        self.anchor(Reading::take());
    }

    fn anchor(&mut self, reading: Reading) {
        let is_first = self.multiplier == 0;
        let before = self.unix_ns(reading.ticks);
        match reading.rate_since(&self.from) {
            Some(rate) if is_first || is_near(rate, self.multiplier) => self.multiplier = rate,
            // The counter or the clock jumped, for example because the machine was suspended.
            _ => {
                self.from = reading;
                self.later = reading;
            }
        }
        let since = |earlier: &Reading| reading.monotonic.duration_since(earlier.monotonic);
        if since(&self.from) >= RATE {
            self.from = self.later;
            self.later = reading;
        } else if since(&self.later) >= RATE / 2 {
            self.later = reading;
        }
        let blur = self.nanoseconds(reading.blur);
        self.anchor_unix_ns = if is_first {
            reading.unix_ns
        } else {
            // Keep the extrapolated time unless the reading contradicts it, so that times do not
            // jitter by the measurement error.
            before.clamp(
                reading.unix_ns.saturating_sub_unsigned(blur),
                reading.unix_ns.saturating_add_unsigned(blur),
            )
        };
        self.anchor_ticks = reading.ticks;
        self.anchored = reading.monotonic;
        self.publish();
    }

    fn publish(&self) {
        let version = PUBLISHED.version.load(Ordering::Relaxed) & !1;
        let writing = PUBLISHED.version.compare_exchange(
            version,
            version.wrapping_add(1),
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if writing.is_err() {
            // Another collector publishes, and its mapping is as good.
            return;
        }
        fence(Ordering::Release);
        let (ticks, unix_ns) = (self.anchor_ticks, self.anchor_unix_ns);
        PUBLISHED.anchor_ticks.store(ticks, Ordering::Relaxed);
        PUBLISHED.anchor_unix_ns.store(unix_ns, Ordering::Relaxed);
        PUBLISHED
            .multiplier
            .store(self.multiplier, Ordering::Relaxed);
        PUBLISHED
            .version
            .store(version.wrapping_add(2), Ordering::Release);
    }

    /// Returns the time at which the counter showed this number.
    #[inline]
    pub(crate) fn unix_ns(&self, ticks: u64) -> i64 {
        let distance = self.nanoseconds(ticks.abs_diff(self.anchor_ticks));
        if ticks >= self.anchor_ticks {
            self.anchor_unix_ns.saturating_add_unsigned(distance)
        } else {
            self.anchor_unix_ns.saturating_sub_unsigned(distance)
        }
    }

    /// Converts ticks to nanoseconds.
    #[inline]
    pub(crate) fn nanoseconds(&self, ticks: u64) -> u64 {
        scaled(ticks, self.multiplier)
    }
}

impl Reading {
    /// Returns the sharpest of a few readings.
    fn take() -> Self {
        let mut best = Self::once();
        for _ in 1..ATTEMPTS {
            if best.blur <= SHARP_TICKS {
                break;
            }
            let another = Self::once();
            if another.blur < best.blur {
                best = another;
            }
        }
        best
    }

    fn once() -> Self {
        let before = ticks::read();
        let monotonic = Instant::now();
        let unix_ns = system_unix_ns();
        let after = ticks::read();
        let blur = after.abs_diff(before);
        Self {
            ticks: before + blur / 2,
            monotonic,
            unix_ns,
            blur,
        }
    }

    /// The nanoseconds of a tick since then, shifted.
    fn rate_since(&self, earlier: &Self) -> Option<u64> {
        let time = self.monotonic.checked_duration_since(earlier.monotonic)?;
        let ticks = self.ticks.checked_sub(earlier.ticks)?;
        let rate = (time.as_nanos() << SHIFT).checked_div(u128::from(ticks))?;
        u64::try_from(rate).ok().filter(|rate| *rate > 0)
    }
}

/// Whether two rates differ only by normal clock drift, and not by a jump.
fn is_near(one: u64, other: u64) -> bool {
    one.abs_diff(other) <= other / 500
}

#[cfg(test)]
mod tests;
