//! What the probe stands beside: no instrumentation, and clock reads alone.

use std::hint::black_box;
use std::time::Instant;

use baler_monitoring::Clock;

use super::variant::{Alone, Variant};
use crate::monitored;

/// The variants that hand nothing to anybody.
pub(super) const VARIANTS: &[Variant] = &[
    Variant::new("none", "no instrumentation", |_| Ok(Box::new(Alone(none)))),
    Variant::new(
        "clock",
        "two reads of the processor's cycle counter and nothing else: the floor",
        |_| Ok(Box::new(Alone(clock))),
    ),
    Variant::new(
        "instant",
        "two reads of the operating system's monotonic clock (std's Instant)",
        |_| Ok(Box::new(Alone(instant))),
    ),
    Variant::new(
        "system-clock",
        "two reads of Baler's clock where the processor's counter cannot be trusted",
        |_| Ok(Box::new(Alone(system_clock))),
    ),
];

/// Reads the processor's time stamp counter, or the operating system's clock where there is none that
/// a program may read so.
///
/// Nothing is checked and nothing converted: this is the floor that others are compared with.
#[inline]
pub fn cycles() -> u64 {
    #[cfg(test)]
    CLOCK_READS.set(CLOCK_READS.get() + 1);
    #[cfg(target_arch = "x86_64")]
    #[expect(
        unsafe_code,
        reason = "the counter has no safe function; reading it touches no memory"
    )]
    // SAFETY: every processor of this architecture has the instruction, and Linux permits it to
    // programs unless it is asked not to.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
        seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos)
    }
}

#[cfg(test)]
thread_local! {
    static CLOCK_READS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How often this thread has called [`cycles`].
#[cfg(test)]
pub(super) fn clock_reads() -> u64 {
    CLOCK_READS.get()
}

monitored! { fn none {} }

monitored! {
    fn clock {
        let begin = cycles();
    } after {
        black_box(cycles().wrapping_sub(begin));
    }
}

monitored! {
    fn instant {
        let begin = Instant::now();
    } after {
        black_box(begin.elapsed());
    }
}

monitored! {
    fn system_clock {
        let begin = Clock::System.unix_ns();
    } after {
        black_box(Clock::System.unix_ns().wrapping_sub(begin));
    }
}
