//! Entries to and exits from constructors.
//!
//! Kieker's package `kieker.common.record.flow.trace.operation.constructor`.

pub mod object;

use crate::record::Record;

/// A constructor returned.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.constructor.AfterConstructorEvent",
    rename_all = "camelCase"
)]
pub struct AfterConstructorEvent {
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

/// A constructor ended with an exception.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.constructor.AfterConstructorFailedEvent",
    rename_all = "camelCase"
)]
pub struct AfterConstructorFailedEvent {
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

/// A constructor is entered.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.constructor.BeforeConstructorEvent",
    rename_all = "camelCase"
)]
pub struct BeforeConstructorEvent {
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

/// An operation calls a constructor.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.constructor.CallConstructorEvent",
    rename_all = "camelCase"
)]
pub struct CallConstructorEvent {
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
