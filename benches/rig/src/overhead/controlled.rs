//! A controller that probes use while they are measured, and its account afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Controller, ControllerBuilder};

use super::application::Outer;
use super::ends::Receiver;
use super::variant::{End, Running};
use crate::failure::Failure;

/// How long what is in the queues may take to be delivered at the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A controller whose writer discards.
pub(super) fn null() -> ControllerBuilder {
    Controller::builder(Box::new(NullWriter::new(NullConfig::default())))
}

/// Which records the controller is to have taken.
#[derive(Debug, Clone)]
pub(super) enum Taken {
    /// That of every call; every one of them is delivered or counted as lost.
    All,
    /// Some that tell of every call, as this adds up.
    Added(Arc<AtomicU64>),
    /// None: a pattern deactivates all probes.
    Deactivated,
    /// Two of every call, and one of every call from outside, which nests so deep.
    Events { depth: u32 },
    /// None: monitoring is off.
    Nothing,
    /// Those of some calls; every one of them is delivered or counted as lost.
    Some,
    /// That of every call, but its writer takes nothing, so that there is nothing to wait for.
    Stalled,
}

/// What is at the other end of the writer, and ends after it.
pub(super) enum Other {
    Folder(tempfile::TempDir),
    Nothing,
    Receiver(Receiver),
}

/// A controller that probes use.
pub(super) struct Controlled {
    controller: Controller,
    outer: Outer,
    taken: Taken,
    end: Other,
}

impl Controlled {
    pub(super) fn start(
        builder: ControllerBuilder,
        outer: Outer,
        taken: Taken,
        end: Other,
    ) -> Result<Box<dyn Running>, Failure> {
        // The only records are those of the calls.
        let builder = builder.metadata_record(false).application("overhead");
        let controller = builder
            .start()
            .map_err(Failure::cannot("start a controller"))?;
        controller.install();
        if matches!(taken, Taken::Deactivated) {
            controller
                .deactivate("*")
                .map_err(Failure::cannot("deactivate probes"))?;
        }
        Ok(Box::new(Self {
            controller,
            outer,
            taken,
            end,
        }))
    }
}

impl Running for Controlled {
    fn outer(&self) -> Outer {
        self.outer
    }

    fn settle(&self) {
        if !matches!(self.taken, Taken::Stalled) {
            // What cannot be delivered is told at the end.
            self.controller.flush(PATIENCE).unwrap_or_default();
        }
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        let patience = match self.taken {
            Taken::Stalled => Duration::ZERO,
            _ => PATIENCE,
        };
        let report = self.controller.shutdown(patience);
        match self.end {
            Other::Folder(folder) => drop(folder),
            Other::Nothing => {}
            Other::Receiver(receiver) => receiver.end()?,
        }
        let mut lost = report.dropped().total();
        let emitted = match self.taken {
            Taken::Deactivated | Taken::Nothing => 0,
            Taken::All | Taken::Stalled => calls,
            Taken::Events { depth } => calls * 2 + calls / u64::from(depth.max(1)),
            Taken::Some => report.emitted(),
            Taken::Added(told) => {
                let told = told.load(Ordering::Acquire);
                let missing = calls.checked_sub(told);
                lost =
                    missing.ok_or_else(|| Failure::new(format!("{calls} calls: {told} told")))?;
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
