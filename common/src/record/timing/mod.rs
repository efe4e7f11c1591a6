//! How long operations take, told in less than one record a call with its place in a trace, or in
//! more.
//!
//! Kieker itself has no such types; the first one is that of KoPeMe
//! (`de.dagere.kopeme.kieker.record.DurationRecord`), field by field.

mod aggregate;
mod asynchronous;
mod log_linear;

pub use aggregate::{AggregateError, AggregatedDurationRecord};
pub use asynchronous::AsyncOperationExecutionRecord;
pub use log_linear::LogLinear;

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
