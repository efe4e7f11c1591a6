//! The kinds of probes that are compared: the same work with different probes.

use std::time::Duration;

use baler_monitoring::{ControllerBuilder, probe};

use crate::Failure;

/// A function that does this number of steps of work.
pub(super) type Worker = fn(u64) -> u64;

/// A kind of probe. A new one needs a line in [`KINDS`], and one with `versions!`.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// The versions of the function; their records are of the operations [`VERSIONS`].
    pub(super) versions: [Worker; 2],
    /// The settings of its controller; `None` if nothing is recorded, and the loop around the calls
    /// reads the clock.
    pub(super) settings: Option<fn(ControllerBuilder) -> ControllerBuilder>,
}

impl Kind {
    const fn new(
        name: &'static str,
        versions: [Worker; 2],
        settings: Option<fn(ControllerBuilder) -> ControllerBuilder>,
    ) -> Self {
        Self {
            name,
            versions,
            settings,
        }
    }
}

/// The operations of the base version and of the changed one.
pub(super) const VERSIONS: [&str; 2] = ["base", "changed"];

/// With the default of a second a run would have a handful of records.
const AGGREGATION: Duration = Duration::from_millis(10);

pub(super) const KINDS: &[Kind] = &[
    Kind::new("none", none::VERSIONS, None),
    Kind::new("full", full::VERSIONS, Some(|builder| builder)),
    Kind::new("duration", duration::VERSIONS, Some(|builder| builder)),
    Kind::new(
        "aggregated",
        aggregated::VERSIONS,
        Some(|builder| {
            // The collector looks at least twice in the wait time.
            builder
                .aggregation_interval(AGGREGATION)
                .wait_time(AGGREGATION)
        }),
    ),
    Kind::new("part-time", part_time::VERSIONS, Some(|builder| builder)),
];

/// Returns the kind with this name.
pub(super) fn find(name: &str) -> Result<&'static Kind, Failure> {
    let found = KINDS.iter().find(|kind| kind.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
        let names = names.join(", ");
        Failure::new(format!("there is no kind {name}; choose from {names}"))
    })
}

/// Makes two versions of the function that have the same code, with or without a probe.
macro_rules! versions {
    ($name:ident $(probe($($option:tt)*))?) => {
        mod $name {
            use super::*;

            pub(super) const VERSIONS: [Worker; 2] = [base, changed];

            $(#[probe(name = "base", $($option)*)])?
            #[inline(never)]
            fn base(steps: u64) -> u64 {
                work(steps)
            }

            $(#[probe(name = "changed", $($option)*)])?
            #[inline(never)]
            fn changed(steps: u64) -> u64 {
                work(steps)
            }
        }
    };
}

versions!(none);
versions!(full probe());
versions!(duration probe(record = duration));
versions!(aggregated probe(record = aggregated));
versions!(part_time probe(sample = 1 / 100));

/// Steps that depend on each other, so that more steps take as much more time. Both versions share
/// this machine code: two copies could differ by their alignment.
#[inline(never)]
pub(super) fn work(steps: u64) -> u64 {
    let mut state = steps;
    for step in 0..steps {
        state = (state ^ (state >> 29) ^ step).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    state
}
