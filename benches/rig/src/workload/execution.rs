//! The record of a call, and the call with its strings.

use baler_common::record::{Interned, Record};
use baler_connector_kieker::types::OperationExecutionRecord;
use serde::{Deserialize, Serialize};

use super::{Call, HOSTNAME};

/// The strings to which calls refer by position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Signatures of operations.
    pub operations: Vec<String>,
    /// Ids of sessions.
    pub sessions: Vec<String>,
}

impl Names {
    /// Returns a call with its strings.
    ///
    /// # Panics
    ///
    /// The call is of another workload.
    pub fn plain(&self, call: &Call) -> PlainCall<'_> {
        PlainCall {
            operation_signature: &self.operations[call.operation],
            session_id: &self.sessions[call.session],
            trace_id: call.trace_id,
            tin: call.tin,
            tout: call.tout,
            hostname: HOSTNAME,
            eoi: call.eoi,
            ess: call.ess,
        }
    }
}

/// A call with its strings. For serde it has the names of Kieker's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "OperationExecutionRecord", rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are those of Kieker's record")]
pub struct PlainCall<'a> {
    pub operation_signature: &'a str,
    pub session_id: &'a str,
    pub trace_id: i64,
    pub tin: i64,
    pub tout: i64,
    pub hostname: &'a str,
    pub eoi: i32,
    pub ess: i32,
}

impl<'a> From<&'a OperationExecutionRecord> for PlainCall<'a> {
    fn from(record: &'a OperationExecutionRecord) -> Self {
        Self {
            operation_signature: &record.operation_signature,
            session_id: &record.session_id,
            trace_id: record.trace_id,
            tin: record.tin,
            tout: record.tout,
            hostname: &record.hostname,
            eoi: record.eoi,
            ess: record.ess,
        }
    }
}

/// The record of a [`Call`]: Kieker's `OperationExecutionRecord`, as a service would emit it.
///
/// A call site's signature and host are interned, as in the probes. The session is a separate
/// string, as in a request. The timestamp is the end of the call, so that everything follows from
/// the workload's seed.
///
/// It can only be written; read it as [`OperationExecutionRecord`].
#[derive(Debug, Clone, Record)]
#[record(
    name = "kieker.common.record.controlflow.OperationExecutionRecord",
    rename_all = "camelCase"
)]
pub struct Execution {
    operation_signature: Interned,
    session_id: String,
    trace_id: i64,
    #[record(unix_nanos)]
    tin: i64,
    #[record(timestamp)]
    tout: i64,
    hostname: Interned,
    eoi: i32,
    ess: i32,
}

/// Makes the records of calls. Records of one session reuse the same memory, so that making or
/// writing one neither allocates nor copies its session.
#[derive(Debug, Clone)]
pub struct Executions {
    operations: Vec<Interned>,
    /// The record of each session.
    records: Vec<Execution>,
}

impl Executions {
    /// Prepares the records of calls that refer to these strings.
    ///
    /// Interns the signatures, for the rest of the program.
    pub fn new(names: &Names) -> Self {
        let first = |session: &str| Execution {
            operation_signature: Interned::new(""),
            session_id: session.to_owned(),
            trace_id: -1,
            tin: -1,
            tout: -1,
            hostname: Interned::new(HOSTNAME),
            eoi: -1,
            ess: -1,
        };
        Self {
            operations: names
                .operations
                .iter()
                .map(|it| Interned::leaked(it))
                .collect(),
            records: names.sessions.iter().map(|it| first(it)).collect(),
        }
    }

    /// Returns the record of a call.
    ///
    /// # Panics
    ///
    /// The call is of another workload.
    pub fn of(&mut self, call: &Call) -> &Execution {
        let record = &mut self.records[call.session];
        record.operation_signature = self.operations[call.operation];
        record.trace_id = call.trace_id;
        record.tin = call.tin;
        record.tout = call.tout;
        record.eoi = call.eoi;
        record.ess = call.ess;
        record
    }
}

#[cfg(test)]
mod tests;
