//! Probes, queue and collector: the part of Baler that is linked into an application.
//!
//! ```text
//! probe -> queue per thread -> collector: batch -> [chunk] -> writer
//! ```
//!
//! # In applications
//!
//! `main` chooses a writer from a connector crate, starts a [`Controller`], installs it, and keeps
//! a [`ShutdownGuard`] until its end:
//!
//! ```
//! # use std::time::Duration;
//! # use baler_common::transport::ChunkWriter;
//! # use baler_monitoring::{Controller, StartError};
//! # fn monitor(writer: Box<dyn ChunkWriter>) -> Result<(), StartError> {
//! let controller = Controller::builder(writer).application("shop").start()?;
//! controller.install();
//! let _guard = controller.guard(Duration::from_secs(5));
//! // ...
//! # Ok(())
//! # }
//! ```
//!
//! # In libraries
//!
//! A library puts [`macro@probe`] on functions, [`enter!`] on blocks, and calls [`emit`] for records
//! of its own; it leaves the rest to the application. Without an installed controller each of them
//! costs one load and does nothing.
//!
//! ```
//! # mod shop {
//! #[baler_monitoring::probe]
//! pub fn order(item: &str, count: u32) -> bool {
//!     !item.is_empty() && count > 0
//! }
//! # }
//! ```
//!
//! [`TraceContext`] says which calls belong together.

mod clock;
mod collector;
mod controller;
mod enter;
#[cfg(not(feature = "enable"))]
mod off;
#[cfg(feature = "enable")]
mod probe;
mod queue;
#[cfg(feature = "enable")]
mod trace;

#[cfg(feature = "macros")]
pub use baler_monitoring_macros::probe;
pub use clock::{Clock, TestClock};
pub use collector::{ClosedBy, ClosedByCounts, Event, Quarantined, ShutdownReport, Stats};
pub use controller::{
    Controller, ControllerBuilder, FlushError, ShutdownGuard, StartError, emit, installed,
    shutdown_installed,
};
#[cfg(not(feature = "enable"))]
pub use off::{Attached, Guard, TraceContext, in_trace};
#[cfg(feature = "enable")]
pub use probe::Guard;
pub use queue::{Overflow, Suppressed, suppress};
#[cfg(feature = "enable")]
pub use trace::{Attached, TraceContext, in_trace};

/// What the code written by `#[probe]` and `enter!` calls; not for anybody else.
#[doc(hidden)]
pub mod __private {
    #[cfg(not(feature = "enable"))]
    pub use crate::off::Site;
    #[cfg(feature = "enable")]
    pub use crate::probe::{Call, Site};
}

/// The program on the first screen of README.md compiles and runs.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../../README.md")]
struct Readme;
