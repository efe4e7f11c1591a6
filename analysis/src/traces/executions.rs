//! The calls of a trace as Kieker's executions, whatever its records were.

use baler_connector_kieker::types::OperationExecutionRecord;

use super::assemble::{ClosedTrace, NO_SESSION};
use super::operations::Operations;

/// The modifier that marks an asynchronous call, at the beginning of its signature. No signature in
/// Java or of `#[probe]` has it.
const ASYNC: &str = "async ";

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
                hostname: (*operation.host).to_owned(),
                eoi: call.eoi,
                ess: call.ess,
            }
        })
    }
}

/// Returns a signature without the mark of asynchronous calls, and whether it had the mark.
pub(super) fn without_async(signature: &str) -> (&str, bool) {
    match signature.strip_prefix(ASYNC) {
        Some(signature) => (signature, true),
        None => (signature, false),
    }
}
