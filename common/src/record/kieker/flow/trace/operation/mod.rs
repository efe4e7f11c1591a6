//! Entries to and exits from operations.
//!
//! Kieker's package `kieker.common.record.flow.trace.operation`.

pub mod constructor;
pub mod object;

use crate::record::Record;

/// An operation returned.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.AfterOperationEvent",
    rename_all = "camelCase"
)]
pub struct AfterOperationEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The operation with its parameters.
    #[record(default)]
    pub operation_signature: String,
    /// The class of the operation.
    #[record(default)]
    pub class_signature: String,
}

/// An operation ended with an exception.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.AfterOperationFailedEvent",
    rename_all = "camelCase"
)]
pub struct AfterOperationFailedEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The operation with its parameters.
    #[record(default)]
    pub operation_signature: String,
    /// The class of the operation.
    #[record(default)]
    pub class_signature: String,
    /// The exception, as text.
    #[record(default)]
    pub cause: String,
}

/// An operation is entered.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.BeforeOperationEvent",
    rename_all = "camelCase"
)]
pub struct BeforeOperationEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The operation with its parameters.
    #[record(default)]
    pub operation_signature: String,
    /// The class of the operation.
    #[record(default)]
    pub class_signature: String,
}

/// An operation calls another.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.CallOperationEvent",
    rename_all = "camelCase"
)]
pub struct CallOperationEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The operation with its parameters.
    #[record(default)]
    pub operation_signature: String,
    /// The class of the operation.
    #[record(default)]
    pub class_signature: String,
    /// The called operation with its parameters.
    #[record(default)]
    pub callee_operation_signature: String,
    /// The class of the called operation.
    #[record(default)]
    pub callee_class_signature: String,
}

/// An operation that a user called is entered, with the values of its parameters.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.EntryLevelBeforeOperationEvent",
    rename_all = "camelCase"
)]
pub struct EntryLevelBeforeOperationEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The operation with its parameters.
    #[record(default)]
    pub operation_signature: String,
    /// The class of the operation.
    #[record(default)]
    pub class_signature: String,
    /// The parameters' names.
    pub parameters: Vec<String>,
    /// The parameters' values, as text.
    pub values: Vec<String>,
    /// What kind of request it is.
    pub request_type: i32,
}
