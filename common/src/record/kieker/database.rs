//! Calls to databases.
//!
//! Kieker's package `kieker.common.record.database`.

use crate::record::Record;

/// A call to a database returned.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.database.AfterDatabaseEvent",
    rename_all = "camelCase"
)]
pub struct AfterDatabaseEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The class of the operation.
    #[record(default)]
    pub class_signature: String,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The type of the result.
    #[record(default)]
    pub return_type: String,
    /// The result, as text.
    #[record(default)]
    pub return_value: String,
}

/// A call to a database begins.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.database.BeforeDatabaseEvent",
    rename_all = "camelCase"
)]
pub struct BeforeDatabaseEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The class of the operation.
    #[record(default)]
    pub class_signature: String,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The statement or its parameters, as text.
    #[record(default)]
    pub parameters: String,
    /// Which database it is.
    #[record(default)]
    pub technology: String,
}

/// A call to a database failed.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.database.DatabaseFailedEvent",
    rename_all = "camelCase"
)]
pub struct DatabaseFailedEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The class of the operation.
    #[record(default)]
    pub class_signature: String,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The exception, as text.
    #[record(default)]
    pub cause: String,
}
