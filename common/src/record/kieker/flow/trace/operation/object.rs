//! Entries to and exits from operations, with the object.
//!
//! Kieker's package `kieker.common.record.flow.trace.operation.object`.

use crate::record::Record;

/// An operation of a known object ended with an exception.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.object.AfterOperationFailedObjectEvent",
    rename_all = "camelCase"
)]
pub struct AfterOperationFailedObjectEvent {
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

/// An operation of a known object returned.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.object.AfterOperationObjectEvent",
    rename_all = "camelCase"
)]
pub struct AfterOperationObjectEvent {
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

/// An operation of a known object is entered.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.object.BeforeOperationObjectEvent",
    rename_all = "camelCase"
)]
pub struct BeforeOperationObjectEvent {
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

/// An operation of a known object is entered by an interface.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.object.BeforeOperationObjectInterfaceEvent",
    rename_all = "camelCase"
)]
pub struct BeforeOperationObjectInterfaceEvent {
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

/// An operation calls another; both objects are known.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.object.CallOperationObjectEvent",
    rename_all = "camelCase"
)]
pub struct CallOperationObjectEvent {
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

/// An operation of a known object that a user called is entered, with the values of its parameters.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.operation.object.EntryLevelBeforeOperationObjectEvent",
    rename_all = "camelCase"
)]
pub struct EntryLevelBeforeOperationObjectEvent {
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
    /// The parameters' names.
    pub parameters: Vec<String>,
    /// The parameters' values, as text.
    pub values: Vec<String>,
    /// What kind of request it is.
    pub request_type: i32,
}
