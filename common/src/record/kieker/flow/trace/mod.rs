//! Traces: where they run, and what crosses from one to another.
//!
//! Kieker's package `kieker.common.record.flow.trace`.

pub mod concurrency;
pub mod operation;

use crate::record::Record;

/// Where a trace runs, with the name of its application.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.ApplicationTraceMetadata",
    rename_all = "camelCase"
)]
pub struct ApplicationTraceMetadata {
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default)]
    pub trace_id: i64,
    /// The thread.
    #[record(default)]
    pub thread_id: i64,
    /// The session, or `<no-session-id>`.
    #[record(default = "<no-session-id>".into())]
    pub session_id: String,
    /// The host.
    #[record(default = "<default-host>".into())]
    pub hostname: String,
    /// The trace that started this one; the trace's own id when there is none.
    #[record(default = -1)]
    pub parent_trace_id: i64,
    /// The number of the event that started this trace; -1 when there is none.
    #[record(default = -1)]
    pub parent_order_id: i32,
    /// The application.
    #[record(default = "<no-application-name>".into())]
    pub application_name: String,
}

/// A call from another process came in.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.BeforeReceivedRemoteEvent",
    rename_all = "camelCase"
)]
pub struct BeforeReceivedRemoteEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default = -1)]
    pub timestamp: i64,
    /// The trace of the caller.
    #[record(default = -1)]
    pub caller_trace_id: i64,
    /// The number of the call in the caller's trace.
    #[record(default = -1)]
    pub caller_order_index: i32,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
}

/// A call to another process goes out.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.BeforeSentRemoteEvent",
    rename_all = "camelCase"
)]
pub struct BeforeSentRemoteEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default = -1)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// How the call is made, or `<default-technology>`.
    #[record(default = "<default-technology>".into())]
    pub technology: String,
}

/// An object was made.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.ConstructionEvent",
    rename_all = "camelCase"
)]
pub struct ConstructionEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The class of the operation.
    #[record(default)]
    pub class_signature: String,
    /// The identity of the object; 0 for none.
    #[record(default)]
    pub object_id: i32,
}

/// Where a trace runs.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.TraceMetadata",
    rename_all = "camelCase"
)]
pub struct TraceMetadata {
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default)]
    pub trace_id: i64,
    /// The thread.
    #[record(default)]
    pub thread_id: i64,
    /// The session, or `<no-session-id>`.
    #[record(default = "<no-session-id>".into())]
    pub session_id: String,
    /// The host.
    #[record(default = "<default-host>".into())]
    pub hostname: String,
    /// The trace that started this one; the trace's own id when there is none.
    #[record(default = -1)]
    pub parent_trace_id: i64,
    /// The number of the event that started this trace; -1 when there is none.
    #[record(default = -1)]
    pub parent_order_id: i32,
}
