//! What the probe stands beside: no instrumentation, and clock reads alone.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Instant;

use baler_monitoring::Clock;

use super::variant::{Alone, Variant};
use crate::monitored;

/// The variants that hand nothing to anybody.
pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "none",
        about: "no instrumentation",
        set_up: |_| Ok(Box::new(Alone(none))),
    },
    Variant {
        name: "clock",
        about: "two reads of the processor's cycle counter and nothing else: the floor",
        set_up: |_| {
            // Finding out which counter to read takes a while.
            black_box(cycles());
            Ok(Box::new(Alone(clock)))
        },
    },
    Variant {
        name: "instant",
        about: "two reads of the operating system's monotonic clock (std's Instant)",
        set_up: |_| Ok(Box::new(Alone(instant))),
    },
    Variant {
        name: "baler-clock",
        about: "two reads of the clock that stamps Baler's records",
        set_up: |_| Ok(Box::new(Alone(baler_clock))),
    },
];

/// Where the processor has no counter that fits, this is the operating system's clock.
static CYCLES: LazyLock<quanta::Clock> = LazyLock::new(quanta::Clock::new);

/// Reads the processor's cycle counter.
#[inline]
pub fn cycles() -> u64 {
    CYCLES.raw()
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
    fn baler_clock {
        let begin = Clock::System.unix_ns();
    } after {
        black_box(Clock::System.unix_ns().wrapping_sub(begin));
    }
}
