//! A controller that probes use while they are measured, and its account afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baler_common::container::{ChunkHeader, ChunkSerializer, EncodeError, NativeSerializer};
use baler_common::record::timing::AggregatedDurationRecord;
use baler_common::record::{Column, Record as _, RecordBatch};
use baler_common::transport::ContainerKind;
use baler_monitoring::{Controller, ControllerBuilder};

use super::application::Outer;
use super::variant::{End, Running};
use crate::harness::Failure;

/// How long the controller may take to deliver its queues at the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which records the probes make.
#[derive(Debug, Clone)]
pub(super) enum Makes {
    /// One for many calls; the counts in them add up to this number.
    Aggregated(Arc<AtomicU64>),
    /// None: a pattern deactivates all probes.
    Deactivated,
    /// Two for every call, and one for every call from outside, which nests this deep.
    Events { depth: u32 },
    /// None: monitoring is off.
    Nothing,
    /// One for every call.
    One,
    /// One for some of the calls.
    Some,
}

/// Ends the other end of the writer, after the writer.
pub(super) type EndPeer = Box<dyn FnOnce() -> Result<(), Failure>>;

/// A controller that probes use.
pub(super) struct Controlled {
    controller: Controller,
    outer: Outer,
    makes: Makes,
    end_peer: EndPeer,
}

impl Controlled {
    pub(super) fn start(
        builder: ControllerBuilder,
        outer: Outer,
        makes: Makes,
        end_peer: EndPeer,
    ) -> Result<Box<dyn Running>, Failure> {
        // The only records are those of the calls.
        let builder = builder.metadata_record(false).application("overhead");
        let controller = builder
            .start()
            .map_err(Failure::cannot("start a controller"))?;
        controller.install();
        if matches!(makes, Makes::Deactivated) {
            controller
                .deactivate("*")
                .map_err(Failure::cannot("deactivate probes"))?;
        }
        Ok(Box::new(Self {
            controller,
            outer,
            makes,
            end_peer,
        }))
    }
}

impl Running for Controlled {
    fn outer(&self) -> Outer {
        self.outer
    }

    fn settle(&self) {
        // The report at the end tells what cannot be delivered.
        self.controller.flush(PATIENCE).unwrap_or_default();
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        let report = self.controller.shutdown(PATIENCE);
        (self.end_peer)()?;
        let mut lost = report.dropped().total();
        let emitted = match self.makes {
            Makes::Deactivated | Makes::Nothing => 0,
            Makes::One => calls,
            Makes::Events { depth } => calls * 2 + calls / u64::from(depth.max(1)),
            Makes::Some => report.emitted(),
            Makes::Aggregated(counted) => {
                let counted = counted.load(Ordering::Acquire);
                lost = calls.checked_sub(counted).ok_or_else(|| {
                    Failure::new(format!("the records count {counted} of {calls} calls"))
                })?;
                report.emitted()
            }
        };
        if !report.adds_up() || report.emitted() != emitted {
            let reason = format!("{emitted} records were to be emitted: {report}");
            return Err(Failure::new(reason));
        }
        Ok(End { lost })
    }
}

/// Encodes like the controller's default, and adds up the counts of aggregated records.
pub(super) struct Counting {
    serializer: NativeSerializer,
    calls: Arc<AtomicU64>,
}

impl Counting {
    pub(super) fn new(calls: Arc<AtomicU64>) -> Self {
        Self {
            serializer: NativeSerializer::default(),
            calls,
        }
    }
}

impl ChunkSerializer for Counting {
    fn container(&self) -> ContainerKind {
        self.serializer.container()
    }

    fn serialize(
        &mut self,
        batch: &RecordBatch,
        header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let written = self.serializer.serialize(batch, header, out)?;
        for table in batch.tables() {
            if Arc::ptr_eq(table.schema(), AggregatedDurationRecord::schema())
                && let Some(Column::Unsigned(counts)) = table.column("count")
            {
                self.calls.fetch_add(counts.iter().sum(), Ordering::AcqRel);
            }
        }
        Ok(written)
    }
}
