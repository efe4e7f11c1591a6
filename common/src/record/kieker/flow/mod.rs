//! Traces told event by event.
//!
//! Kieker's package `kieker.common.record.flow`.

pub mod thread;
pub mod trace;
