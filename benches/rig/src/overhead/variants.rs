//! The variants without rivals: no probe, clock reads, and Baler's probes.

use std::hint::black_box;
use std::time::Instant;

use baler_common::record::Record;
use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Controller, ControllerBuilder, Overflow, emit, probe};

use super::controlled::{Makes, start};
use super::variant::{Alone, Variant};
use crate::monitored;

/// The variants without rivals.
pub fn variants() -> Vec<Variant> {
    vec![
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
            "deactivated",
            "the probe of an operation, while monitoring is switched off",
            |_| start(null().enabled(false), operation, Makes::Nothing),
        ),
        Variant::new(
            "deactivated-pattern",
            "the probe of an operation that a pattern deactivates, while monitoring is on",
            |_| start(null(), operation, Makes::Deactivated),
        ),
        Variant::new(
            "operation",
            "operation execution records through queue, collector and encoding to a writer that \
             discards; blocking when the queue is full",
            |_| start(null(), operation, Makes::One),
        ),
        Variant::new(
            "operation-drop-oldest",
            "as operation, but a full queue is overwritten: the circular queue",
            |_| {
                let builder = null().overflow(Overflow::DropOldest);
                start(builder, operation, Makes::One)
            },
        ),
        Variant::new(
            "duration",
            "as operation, with duration records, which hold less",
            |_| start(null(), duration, Makes::One),
        ),
        Variant::new(
            "aggregated",
            "as operation, with count, sum, minimum and maximum of many calls in one record a second",
            |_| start(null(), aggregated, Makes::Some),
        ),
        Variant::new(
            "aggregated-histogram",
            "as aggregated, with a histogram of 16 buckets for each power of two",
            |_| start(null(), histogram, Makes::Some),
        ),
        Variant::new(
            "events",
            "as operation, with an event before and one after each call, and metadata of each trace",
            |case| start(null(), events, Makes::Events { depth: case.depth }),
        ),
        Variant::new(
            "sampled",
            "as operation, for one call in 100; the others are not meant to have a record",
            |_| start(null(), sampled, Makes::Some),
        ),
        Variant::new(
            "emit-flat",
            "a record of seven numbers and a flag through `emit`, without a clock read: one of the \
             numbers is its timestamp",
            |_| start(null(), emit_flat, Makes::One),
        ),
    ]
}

/// Reads the processor's time stamp counter; on other architectures than x86-64, the operating
/// system's clock.
///
/// Nothing is checked or converted: this is the lower limit for the others.
#[inline]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    #[expect(
        unsafe_code,
        reason = "the counter has no safe function; reading it touches no memory"
    )]
    // SAFETY: every processor of this architecture has the instruction, and Linux permits it to
    // programs unless a program forbids it to itself.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = std::time::Duration::try_from(now);
        crate::clock::nanos(now.expect("the monotonic clock counts up from 0"))
    }
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

monitored! { #[probe] fn operation {} }
monitored! { #[probe(record = duration)] fn duration {} }
monitored! { #[probe(record = aggregated)] fn aggregated {} }
monitored! { #[probe(record = aggregated, histogram)] fn histogram {} }
monitored! { #[probe(record = events)] fn events {} }
monitored! { #[probe(sample = 1/100)] fn sampled {} }

monitored! {
    fn emit_flat {} after {
        emit(black_box(&FLAT));
    }
}

#[derive(Record)]
struct Flat {
    #[record(timestamp)]
    time: i64,
    id: u64,
    parent: u64,
    thread: u32,
    size: u32,
    price: f64,
    change: i32,
    is_last: bool,
}

static FLAT: Flat = Flat {
    time: 1_700_000_000_000_000_000,
    id: 1 << 40,
    parent: 1 << 20,
    thread: 7,
    size: 1_500,
    price: 12.5,
    change: -3,
    is_last: true,
};

/// Returns a controller that loses nothing and whose writer discards.
fn null() -> ControllerBuilder {
    let writer = NullWriter::new(NullConfig::default());
    Controller::builder(Box::new(writer)).overflow(Overflow::Block)
}
