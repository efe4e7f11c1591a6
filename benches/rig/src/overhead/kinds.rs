//! Baler's other records of a call: less of each, or one for many.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use baler_monitoring::{Overflow, probe};

use super::application::Outer;
use super::controlled::{Controlled, Other, Taken, null};
use super::ends::Adding;
use super::variant::{Running, Variant};
use crate::failure::Failure;
use crate::monitored;

/// The variants with other records, all through queue, collector and encoding to a writer that
/// discards.
pub(super) const VARIANTS: &[Variant] = &[
    Variant::new(
        "duration",
        "duration records in place of operation's; blocking when the queue is full",
        |_| durations(Overflow::Block),
    ),
    Variant::new(
        "duration-drop-oldest",
        "as duration, but a full queue is overwritten",
        |_| durations(Overflow::DropOldest),
    ),
    Variant::new(
        "aggregated",
        "count, sum, minimum and maximum of many calls in a record, told every second",
        |_| added(Overflow::Block, aggregated),
    ),
    Variant::new(
        "aggregated-drop-oldest",
        "as aggregated, but a full queue is overwritten",
        |_| added(Overflow::DropOldest, aggregated),
    ),
    Variant::new(
        "aggregated-histogram",
        "as aggregated, with a histogram of 16 buckets for each power of two",
        |_| added(Overflow::Block, histogram),
    ),
    Variant::new(
        "events",
        "an event before and one after each call, and metadata of each trace",
        |case| {
            let builder = null().overflow(Overflow::Block);
            let taken = Taken::Events { depth: case.depth };
            Controlled::start(builder, events, taken, Other::Nothing)
        },
    ),
    Variant::new(
        "duration-full",
        "as duration, with an operation's record beside it of one call in 1,000",
        |_| added(Overflow::Block, two_kinds),
    ),
    Variant::new(
        "aggregated-full",
        "as aggregated, with an operation's record beside it of one call in 1,000",
        |_| added(Overflow::Block, aggregated_full),
    ),
    Variant::new(
        "sampled",
        "an operation's record of one call in 100; the others are not meant to have one",
        |_| Controlled::start(null(), sampled, Taken::Some, Other::Nothing),
    ),
];

monitored! { #[probe(record = duration)] fn duration {} }
monitored! { #[probe(record = aggregated)] fn aggregated {} }
monitored! { #[probe(record = aggregated, histogram)] fn histogram {} }
monitored! { #[probe(record = events)] fn events {} }
monitored! { #[probe(record = duration, full = 1/1000)] fn two_kinds {} }
monitored! { #[probe(record = aggregated, full = 1/1000)] fn aggregated_full {} }
monitored! { #[probe(sample = 1/100)] fn sampled {} }

fn durations(overflow: Overflow) -> Result<Box<dyn Running>, Failure> {
    Controlled::start(
        null().overflow(overflow),
        duration,
        Taken::All,
        Other::Nothing,
    )
}

/// Records of which each tells how many calls it is of.
fn added(overflow: Overflow, outer: Outer) -> Result<Box<dyn Running>, Failure> {
    let calls = Arc::new(AtomicU64::new(0));
    let builder = null().overflow(overflow);
    let builder = builder.serializer(Adding::new(Arc::clone(&calls)));
    Controlled::start(builder, outer, Taken::Added(calls), Other::Nothing)
}
