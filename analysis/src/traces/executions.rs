//! The calls of a trace as Kieker's executions, whatever its records were.

use baler_connector_kieker::types::OperationExecutionRecord;

use super::assemble::{ClosedTrace, NO_SESSION};
use super::operations::{ASYNC, Operations};

impl ClosedTrace {
    /// Returns the calls of a valid trace as Kieker's records, in order of entry; of another trace
    /// none.
    ///
    /// The signature of an asynchronous call begins with the modifier `async`. A record does not
    /// contain whether the call failed, nor the trace that called this one.
    pub fn executions(
        &self,
        operations: &Operations,
    ) -> impl Iterator<Item = OperationExecutionRecord> {
        let is_valid = self.outcome.is_valid();
        let calls = self.trace.calls.iter().filter(move |_| is_valid);
        calls.map(|call| {
            let operation = operations.operation(call.operation);
            let mark = if call.asynchronous { ASYNC } else { "" };
            let session = self.trace.session.as_deref();
            OperationExecutionRecord {
                operation_signature: format!("{mark}{}", operation.full_signature()),
                session_id: session.unwrap_or(NO_SESSION).to_owned(),
                trace_id: self.trace.id,
                tin: call.tin,
                tout: call.tout,
                hostname: operation.host.to_owned(),
                eoi: call.eoi,
                ess: call.ess,
            }
        })
    }
}
