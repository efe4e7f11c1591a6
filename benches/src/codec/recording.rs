//! Calls that exist before they are encoded: generated, or recorded in a real application.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use baler_analysis::kieker_log::{LogReader, LogSettings};
use baler_common::record::kieker::OperationExecutionRecord;
use baler_common::record::{BatchBuilder, Record as _, RecordBatch, read};
pub(super) use baler_rig::workload::PlainCall;
use baler_rig::workload::{Call, Executions, Names, Workload};

use crate::Failure;

/// Calls in the order in which a collector took them, and the strings that they name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Recording {
    names: Names,
    calls: Vec<Call>,
}

impl Recording {
    /// The first calls of the [`Workload`] of this seed.
    pub(super) fn generated(seed: u64, records: usize) -> Self {
        let mut workload = Workload::new(seed);
        let calls = workload.by_ref().take(records).collect();
        Self {
            names: workload.names().clone(),
            calls,
        }
    }

    /// The first operation executions of a log that Kieker wrote. Records of other types are skipped.
    ///
    /// # Errors
    ///
    /// The folder cannot be read, or has no such record.
    pub(super) fn of_log(folder: &Path, records: usize) -> Result<Self, Failure> {
        let cannot = Failure::cannot("read the log");
        let log = LogReader::open(folder, LogSettings::default());
        let mut recording = Self::default();
        let (mut operations, mut sessions, mut hosts) =
            (HashMap::new(), HashMap::new(), HashMap::new());
        for record in log.map_err(&cannot)? {
            let record = record.map_err(&cannot)?;
            let record = record.as_ref();
            if record.type_name() != OperationExecutionRecord::schema().name() {
                continue;
            }
            if recording.calls.len() >= records {
                break;
            }
            let record: OperationExecutionRecord =
                read(record.fields()).map_err(Failure::cannot("understand a record"))?;
            recording.calls.push(Call {
                operation: position(
                    &mut operations,
                    &mut recording.names.operations,
                    record.operation_signature,
                ),
                session: position(
                    &mut sessions,
                    &mut recording.names.sessions,
                    record.session_id,
                ),
                host: position(&mut hosts, &mut recording.names.hosts, record.hostname),
                trace_id: record.trace_id,
                tin: record.tin,
                tout: record.tout,
                eoi: record.eoi,
                ess: record.ess,
            });
        }
        if recording.calls.is_empty() {
            let reason = format!("there is no operation execution in {}", folder.display());
            return Err(Failure::new(reason));
        }
        Ok(recording)
    }

    /// The calls.
    pub(super) fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// A call with its strings.
    pub(super) fn plain(&self, call: &Call) -> PlainCall<'_> {
        self.names.plain(call)
    }

    /// The records in batches of this size, as a collector passes them to a serializer.
    ///
    /// # Errors
    ///
    /// A batch cannot take a record.
    pub(super) fn batches(&self, records: usize) -> Result<Vec<RecordBatch>, Failure> {
        let mut executions = Executions::new(&self.names);
        let mut builder = BatchBuilder::new();
        let mut batches = Vec::with_capacity(self.calls.len().div_ceil(records.max(1)));
        for calls in self.calls.chunks(records.max(1)) {
            for call in calls {
                let pushed = builder.push(executions.of(call));
                pushed.map_err(Failure::cannot("make the load"))?;
            }
            batches.push(builder.take());
        }
        Ok(batches)
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} records, {} operations, {} sessions, {} hosts",
            self.calls.len(),
            self.names.operations.len(),
            self.names.sessions.len(),
            self.names.hosts.len(),
        )
    }
}

/// The position of a text in a list, to which it is added if it is new.
fn position(known: &mut HashMap<String, usize>, texts: &mut Vec<String>, text: String) -> usize {
    if let Some(position) = known.get(&text) {
        return *position;
    }
    let position = texts.len();
    texts.push(text.clone());
    known.insert(text, position);
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_2010_is_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../analysis/tests/data/kieker/operation-executions-2010");
        let recording = Recording::of_log(&folder, usize::MAX).unwrap();
        assert_eq!(recording.calls().len(), 6_540);
        let few = Recording::of_log(&folder, 10).unwrap();
        assert_eq!(few.calls(), &recording.calls()[..10]);
        let first = few.plain(&few.calls()[0]);
        assert!(first.operation_signature.contains('('), "{first:?}");
        let empty = tempfile::tempdir().unwrap();
        assert!(Recording::of_log(empty.path(), 10).is_err());
    }

    #[test]
    fn batches_hold_the_calls() {
        let recording = Recording::generated(1, 1_000);
        let batches = recording.batches(300).unwrap();
        let lengths: Vec<_> = batches.iter().map(RecordBatch::len).collect();
        assert_eq!(lengths, [300, 300, 300, 100]);
        let mut calls = recording.calls().iter();
        for record in batches.iter().flat_map(RecordBatch::read) {
            let record: OperationExecutionRecord = record.unwrap();
            let found = PlainCall::from(&record);
            assert_eq!(recording.plain(calls.next().unwrap()), found);
        }
        assert!(calls.next().is_none());
    }
}
