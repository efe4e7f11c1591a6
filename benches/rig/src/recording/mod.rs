//! Calls that exist before they are encoded: generated, or recorded in a real application.
//!
//! ```text
//! workload | Kieker's log | chunks of one's own -> Recording -> records | batches
//! ```

mod load;

use std::fmt;

use baler_common::record::{BatchBuilder, PushError, RecordBatch};

pub use load::Origin;

use crate::workload::{Call, Executions};

/// Calls in the order in which a collector took them, and the strings that they name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    operations: Vec<String>,
    sessions: Vec<String>,
    hosts: Vec<String>,
    calls: Vec<Call>,
}

/// A call with its strings: what a decoder must yield.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainCall<'a> {
    /// The operation's signature.
    pub operation_signature: &'a str,
    /// The session.
    pub session_id: &'a str,
    /// The trace.
    pub trace_id: i64,
    /// When it began, in nanoseconds since the Unix epoch.
    pub tin: i64,
    /// When it ended, in nanoseconds since the Unix epoch.
    pub tout: i64,
    /// The host.
    pub hostname: &'a str,
    /// Its place in the order of the trace's calls, from 0.
    pub eoi: i32,
    /// Its depth in the call tree, from 0.
    pub ess: i32,
}

impl Recording {
    /// The signatures that calls name by position.
    pub fn operations(&self) -> &[String] {
        &self.operations
    }

    /// The sessions that calls name by position.
    pub fn sessions(&self) -> &[String] {
        &self.sessions
    }

    /// The hosts that calls name by position.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The calls.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// A call with its strings; `None` if it is not one of these.
    pub fn plain(&self, call: &Call) -> Option<PlainCall<'_>> {
        Some(PlainCall {
            operation_signature: self.operations.get(call.operation)?,
            session_id: self.sessions.get(call.session)?,
            trace_id: call.trace_id,
            tin: call.tin,
            tout: call.tout,
            hostname: self.hosts.get(call.host)?,
            eoi: call.eoi,
            ess: call.ess,
        })
    }

    /// What makes records of the calls.
    ///
    /// Interns signatures and hosts, for the rest of the program.
    pub fn executions(&self) -> Executions {
        Executions::of_names(&self.operations, &self.sessions, &self.hosts)
    }

    /// The records, so many in each batch but the last, as a collector would hand them to a
    /// serializer.
    ///
    /// # Errors
    ///
    /// See [`PushError`].
    pub fn batches(&self, records: usize) -> Result<Vec<RecordBatch>, PushError> {
        let mut executions = self.executions();
        let mut builder = BatchBuilder::new();
        let mut batches = Vec::with_capacity(self.calls.len().div_ceil(records.max(1)));
        for calls in self.calls.chunks(records.max(1)) {
            for call in calls {
                builder.push(executions.of(call))?;
            }
            batches.push(builder.take());
        }
        Ok(batches)
    }
}

/// What it is, in a line.
impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        write!(
            f,
            "{} records, {} operations, {} sessions, {} hosts, {} bytes of strings",
            self.calls.len(),
            self.operations.len(),
            self.sessions.len(),
            self.hosts.len(),
            bytes(&self.operations) + bytes(&self.sessions) + bytes(&self.hosts)
        )
    }
}

#[cfg(test)]
mod tests {
    use baler_common::record::kieker::OperationExecutionRecord;

    use super::*;

    #[test]
    fn batches_hold_the_calls() {
        let recording = Recording::generated(1, 1_000, 1);
        let batches = recording.batches(300).unwrap();
        let lengths: Vec<_> = batches.iter().map(RecordBatch::len).collect();
        assert_eq!(lengths, [300, 300, 300, 100]);
        let records = batches.iter().flat_map(RecordBatch::read);
        let mut calls = recording.calls().iter();
        for record in records {
            let record: OperationExecutionRecord = record.unwrap();
            let plain = recording.plain(calls.next().unwrap()).unwrap();
            assert_eq!(record.operation_signature, plain.operation_signature);
            assert_eq!(record.session_id, plain.session_id);
            assert_eq!(record.hostname, plain.hostname);
            let numbers = (plain.trace_id, plain.tin, plain.tout, plain.eoi, plain.ess);
            let (tin, tout) = (record.tin, record.tout);
            assert_eq!(
                (record.trace_id, tin, tout, record.eoi, record.ess),
                numbers
            );
        }
        assert!(calls.next().is_none());
    }
}
