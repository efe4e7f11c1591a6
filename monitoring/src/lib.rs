#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(feature = "enable"),
    expect(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "without `enable` probes and queues are compiled, but nothing calls them"
    )
)]

mod adaptive;
mod clock;
mod collector;
mod controller;
mod fork;
#[cfg(not(feature = "enable"))]
mod off;
mod probe;
mod queue;
#[cfg(feature = "samplers")]
mod samplers;
#[cfg(feature = "sampling")]
mod sampling;
mod trace;
mod traceparent;

pub use adaptive::{FileChange, PatternFile, PatternNews};
#[doc(hidden)]
#[cfg(feature = "macros")]
pub use baler_macros::enter_with_options as __enter_with_options;
#[cfg(feature = "macros")]
pub use baler_macros::probe;
pub use clock::{Clock, TestClock};
pub use collector::{ClosedBy, ClosedByCounts, Event, Quarantined, ShutdownReport, Stats};
pub use controller::{
    Controller, ControllerBuilder, FlushError, ShutdownGuard, StartError, emit, installed,
    shutdown_installed,
};
#[cfg(not(feature = "enable"))]
pub use off::{Attached, EventGuard, Guard, TraceContext, in_trace};
#[cfg(feature = "enable")]
pub use probe::{EventGuard, Guard};
pub use queue::{Overflow, Suppressed, suppress};
/// Figures of processes for the program and for measurements; not for other use.
#[doc(hidden)]
#[cfg(all(feature = "samplers", target_os = "linux"))]
pub use samplers::usage;
#[cfg(feature = "samplers")]
pub use samplers::{ProcessRecord, Sampler, SamplerStats};
#[cfg(feature = "sampling")]
pub use sampling::Hybrid;
#[cfg(feature = "enable")]
pub use trace::{Attached, TraceCall, TraceContext, in_trace};
pub use traceparent::{TraceParent, TraceParentError};

/// Called by the code that `#[probe]` and `enter!` write; not for other use.
#[doc(hidden)]
pub mod __private {
    #[cfg(not(feature = "enable"))]
    pub use crate::off::Site;
    #[cfg(feature = "enable")]
    pub use crate::probe::{
        AggregatedGuard, AsyncCall, CellSlot, DurationGuard, Site, Turns, never_called, run,
        run_events,
    };
}
