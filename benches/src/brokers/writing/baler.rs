//! Writing through Baler: emit, queue, collector, encoding, connector.

use std::time::Duration;

use baler_monitoring::Controller;
use baler_rig::lossless;
use baler_rig::workload::Executions;

use super::super::task::Writing;
use super::{Calls, Confirmed, Writes, uri};
use crate::endpoint;
use crate::failure::Failure;

/// How long a repetition may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// One emitting thread and a controller with every setting but those of chunks at its default.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    controller: Controller,
    executions: Executions,
    calls: &'a Calls,
}

impl<'a> Writer<'a> {
    pub(super) fn open(
        task: &Writing,
        calls: &'a Calls,
        chunk_records: u32,
    ) -> Result<Self, Failure> {
        let controller = lossless::controller(endpoint::writer(&uri(task))?, "none")?
            .chunk_records(usize::try_from(chunk_records).unwrap_or(usize::MAX))
            .start()
            .map_err(Failure::cannot("start a controller"))?;
        Ok(Self {
            controller,
            executions: Executions::new(calls.workload()),
            calls,
        })
    }

    /// Ends the controller; yields how many messages there were altogether.
    pub(super) fn close(self) -> Result<u64, Failure> {
        let report = self.controller.shutdown(PATIENCE);
        if report.adds_up() && report.dropped().total() == 0 && report.error.is_none() {
            return Ok(report.stats.chunks_delivered);
        }
        Err(Failure::new(format!("{report}; {:?}", report.error)))
    }
}

impl Writes for Writer<'_> {
    fn write(&mut self, records: u64) -> Result<(), Failure> {
        for call in self.calls.take(records) {
            // What is not taken is counted, with its reason: `close` finds it.
            self.controller.emit(self.executions.of(call));
        }
        let flushed = self.controller.flush(PATIENCE);
        flushed.map_err(Failure::cannot("deliver everything"))
    }

    fn confirmed(&self) -> Confirmed {
        let stats = self.controller.stats();
        Confirmed {
            records: stats.delivered,
            messages: stats.chunks_delivered,
            payload_bytes: stats.bytes_delivered,
        }
    }
}
