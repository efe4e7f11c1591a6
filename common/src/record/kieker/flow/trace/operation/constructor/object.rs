//! Entries to and exits from constructors, with the object.
//!
//! Kieker's package `kieker.common.record.flow.trace.operation.constructor.object`.

use crate::record::Record;

/// A constructor ended with an exception; the object is known.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.constructor.object.AfterConstructorFailedObjectEvent",
    rename_all = "camelCase"
)]
pub struct AfterConstructorFailedObjectEvent {
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
    /// The identity of the object; 0 for none.
    #[record(default)]
    pub object_id: i32,
}

/// A constructor returned; the object is known.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.constructor.object.AfterConstructorObjectEvent",
    rename_all = "camelCase"
)]
pub struct AfterConstructorObjectEvent {
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
    /// The identity of the object; 0 for none.
    #[record(default)]
    pub object_id: i32,
}

/// A constructor is entered; the object is known.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.constructor.object.BeforeConstructorObjectEvent",
    rename_all = "camelCase"
)]
pub struct BeforeConstructorObjectEvent {
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
    /// The identity of the object; 0 for none.
    #[record(default)]
    pub object_id: i32,
}

/// A constructor is entered; the object and its interface are known.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.constructor.object.BeforeConstructorObjectInterfaceEvent",
    rename_all = "camelCase"
)]
pub struct BeforeConstructorObjectInterfaceEvent {
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
    /// The identity of the object; 0 for none.
    #[record(default)]
    pub object_id: i32,
    /// The interface.
    #[record(default)]
    pub interface: String,
}

/// An operation calls a constructor; both objects are known.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.constructor.object.CallConstructorObjectEvent",
    rename_all = "camelCase"
)]
pub struct CallConstructorObjectEvent {
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
    /// The identity of the object; 0 for none.
    #[record(default)]
    pub object_id: i32,
    /// The identity of the called object; 0 for none.
    #[record(default)]
    pub callee_object_id: i32,
}
