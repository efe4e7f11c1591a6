//! Events numbered per thread instead of per trace.
//!
//! Kieker's package `kieker.common.record.flow.thread`.

use crate::record::Record;

/// An operation of a thread ended with an exception.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.thread.AfterFailedThreadBasedEvent",
    rename_all = "camelCase"
)]
pub struct AfterFailedThreadBasedEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The thread.
    #[record(default = -1)]
    pub thread_id: i64,
    /// The number of the event in its thread, from 0.
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

/// An operation of a thread returned.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.thread.AfterThreadBasedEvent",
    rename_all = "camelCase"
)]
pub struct AfterThreadBasedEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The thread.
    #[record(default = -1)]
    pub thread_id: i64,
    /// The number of the event in its thread, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The operation with its parameters.
    #[record(default)]
    pub operation_signature: String,
    /// The class of the operation.
    #[record(default)]
    pub class_signature: String,
}

/// An operation of a thread is entered.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.thread.BeforeThreadBasedEvent",
    rename_all = "camelCase"
)]
pub struct BeforeThreadBasedEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The thread.
    #[record(default = -1)]
    pub thread_id: i64,
    /// The number of the event in its thread, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The operation with its parameters.
    #[record(default)]
    pub operation_signature: String,
    /// The class of the operation.
    #[record(default)]
    pub class_signature: String,
}
