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
//! A library calls [`emit`] and leaves the rest to the application. Without an installed controller that
//! costs one load and does nothing.

mod clock;
mod collector;
mod controller;
mod queue;

pub use clock::{Clock, TestClock};
pub use collector::{ClosedBy, ClosedByCounts, Event, Quarantined, ShutdownReport, Stats};
pub use controller::{
    Controller, ControllerBuilder, FlushError, ShutdownGuard, StartError, emit, installed,
    shutdown_installed,
};
pub use queue::{Overflow, Suppressed, suppress};
