//! Executions of operations, each told once by a single record.
//!
//! Kieker's package `kieker.common.record.controlflow`.

use crate::record::Record;

/// A branch was taken.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.controlflow.BranchingRecord",
    rename_all = "camelCase"
)]
pub struct BranchingRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// Which branching it is.
    #[record(rename = "branchID", default)]
    pub branch_id: i32,
    /// Which way was taken.
    #[record(default)]
    pub branching_outcome: i32,
}

/// One execution of an operation, from entry to end.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.controlflow.OperationExecutionRecord",
    rename_all = "camelCase"
)]
pub struct OperationExecutionRecord {
    /// The operation with its parameters.
    #[record(default = "noOperation".into())]
    pub operation_signature: String,
    /// The session, or `<no-session-id>`.
    #[record(default = "<no-session-id>".into())]
    pub session_id: String,
    /// The trace: a random number per process above, a counter in the lower 32 bits; -1 without one.
    #[record(default = -1)]
    pub trace_id: i64,
    /// Entered at, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default = -1)]
    pub tin: i64,
    /// Ended at, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default = -1)]
    pub tout: i64,
    /// The host.
    #[record(default = "<default-host>".into())]
    pub hostname: String,
    /// Execution order index: the number of the execution in its trace, from 0; -1 without a trace.
    #[record(default = -1)]
    pub eoi: i32,
    /// Execution stack size: how deep the execution is nested, from 0; -1 without a trace.
    #[record(default = -1)]
    pub ess: i32,
}
