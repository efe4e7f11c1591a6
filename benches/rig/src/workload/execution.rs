//! The record of a call.

use baler_common::record::{Interned, Record};

use super::{Call, Workload};

/// The record of a [`Call`]: Kieker's `OperationExecutionRecord`, in the form in which a service
/// would emit it.
///
/// What a call site knows, signature and host, is interned, as the probes do; the session is a
/// string of its own, as a request would bring it.
/// It is timed by its end, so that the workload's seed says everything.
///
/// It can only be written; read it as
/// [`OperationExecutionRecord`](baler_common::record::kieker::OperationExecutionRecord).
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

/// Makes the records of a workload's calls, those of a session one after the other in the same memory:
/// neither making nor writing one allocates, or copies its session, as a service need not that has it
/// at hand.
#[derive(Debug, Clone)]
pub struct Executions {
    operations: Vec<Interned>,
    hosts: Vec<Interned>,
    /// Of each session.
    records: Vec<Execution>,
    /// Of calls whose session is unknown.
    unknown: Execution,
}

impl Executions {
    /// For the calls of this workload, or of another one with the same seed.
    ///
    /// Interns the signatures, for the rest of the program.
    pub fn new(workload: &Workload) -> Self {
        Self::of_names(workload.operations(), workload.sessions(), workload.hosts())
    }

    /// For calls whose strings stand in these lists.
    ///
    /// Interns signatures and hosts, for the rest of the program.
    pub fn of_names(
        operations: &[impl AsRef<str>],
        sessions: &[impl AsRef<str>],
        hosts: &[impl AsRef<str>],
    ) -> Self {
        let unknown = Interned::new("");
        let of = |session: &str| Execution {
            operation_signature: unknown,
            session_id: session.to_owned(),
            trace_id: -1,
            tin: -1,
            tout: -1,
            hostname: unknown,
            eoi: -1,
            ess: -1,
        };
        Self {
            operations: interned(operations),
            hosts: interned(hosts),
            records: sessions.iter().map(|it| of(it.as_ref())).collect(),
            unknown: of(""),
        }
    }

    /// The record of a call; a session that the lists do not have is empty, an operation or host as it
    /// was in the session's record before.
    pub fn of(&mut self, call: &Call) -> &Execution {
        let known = self.records.get_mut(call.session);
        let record = known.unwrap_or(&mut self.unknown);
        if let Some(operation) = self.operations.get(call.operation) {
            record.operation_signature = *operation;
        }
        if let Some(host) = self.hosts.get(call.host) {
            record.hostname = *host;
        }
        record.trace_id = call.trace_id;
        record.tin = call.tin;
        record.tout = call.tout;
        record.eoi = call.eoi;
        record.ess = call.ess;
        record
    }
}

fn interned(texts: &[impl AsRef<str>]) -> Vec<Interned> {
    let texts = texts.iter();
    texts.map(|text| Interned::leaked(text.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use baler_common::record::BatchBuilder;
    use baler_common::record::kieker::OperationExecutionRecord;

    use super::*;

    #[test]
    fn it_is_kiekers_record() {
        assert_eq!(Execution::schema(), OperationExecutionRecord::schema());
    }

    #[test]
    fn it_says_what_the_call_says() {
        let mut workload = Workload::new(1);
        let calls: Vec<_> = workload.by_ref().take(1_000).collect();
        let mut executions = Executions::new(&workload);
        let mut builder = BatchBuilder::new();
        for call in &calls {
            builder.push(executions.of(call)).unwrap();
        }
        let batch = builder.take();
        let read: Vec<OperationExecutionRecord> = batch.read().map(Result::unwrap).collect();
        let expected = calls.iter().map(|call| OperationExecutionRecord {
            operation_signature: workload.operations()[call.operation].clone(),
            session_id: workload.sessions()[call.session].clone(),
            trace_id: call.trace_id,
            tin: call.tin,
            tout: call.tout,
            hostname: workload.hosts()[call.host].to_owned(),
            eoi: call.eoi,
            ess: call.ess,
        });
        assert_eq!(read, expected.collect::<Vec<_>>());
        let timestamps = batch.records().map(|record| record.timestamp().unwrap());
        assert!(timestamps.eq(calls.iter().map(|call| call.tout)));
    }
}
