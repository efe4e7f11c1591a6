//! Traces that start and await each other.
//!
//! Kieker's package `kieker.common.record.flow.trace.concurrency`.

pub mod monitor;

use crate::record::Record;

/// A trace waits for the end of another.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.concurrency.JoinEvent",
    rename_all = "camelCase"
)]
pub struct JoinEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The trace that is waited for.
    #[record(default)]
    pub joined_trace_id: i64,
}

/// A trace starts others.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.concurrency.SplitEvent",
    rename_all = "camelCase"
)]
pub struct SplitEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
}
