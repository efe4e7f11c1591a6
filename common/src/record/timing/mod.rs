//! How long operations take, in less detail than one record a call with its place in a trace, or in
//! more.
//!
//! Kieker itself has no such types; the first one is that of KoPeMe
//! (`de.dagere.kopeme.kieker.record.DurationRecord`), field by field.

mod aggregate;

pub use aggregate::{AggregateError, AggregatedDurationRecord, LogLinear};

use super::Record;

/// One execution of an operation, without its place in a trace.
///
/// KoPeMe's record of the same name, with the same fields in the same order.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "de.dagere.kopeme.kieker.record.DurationRecord",
    rename_all = "camelCase"
)]
pub struct DurationRecord {
    /// The operation with its parameters.
    #[record(default = "noOperation".into())]
    pub operation_signature: String,
    /// Entered at, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default = -1)]
    pub tin: i64,
    /// Ended at, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default = -1)]
    pub tout: i64,
}

/// One execution of an asynchronous operation, with its place in a trace.
///
/// The fields of Kieker's `OperationExecutionRecord`, and what that has no field for.
/// A record of Baler's own.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "baler.AsyncOperationExecutionRecord", rename_all = "camelCase")]
pub struct AsyncOperationExecutionRecord {
    /// The operation with its parameters.
    pub operation_signature: String,
    /// The session.
    #[record(default = "<no-session-id>".into())]
    pub session_id: String,
    /// The trace.
    #[record(default = -1)]
    pub trace_id: i64,
    /// First polled at, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default = -1)]
    pub tin: i64,
    /// Ended at, in nanoseconds since the Unix epoch; from `tin` on it is the total time.
    #[record(unix_nanos, default = -1)]
    pub tout: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// Execution order index: how many calls of the trace began earlier.
    #[record(default = -1)]
    pub eoi: i32,
    /// Execution stack size: how many calls of the trace were open when it began.
    #[record(default = -1)]
    pub ess: i32,
    /// How long it was being polled, in nanoseconds: it waited for the rest of the total time.
    pub busy: u64,
    /// How often it was polled.
    pub polls: u32,
    /// Whether its future was dropped before it was done.
    pub cancelled: bool,
    /// Whether a panic ended it.
    pub panicked: bool,
}
