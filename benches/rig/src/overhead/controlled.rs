//! A controller that probes use while they are measured, and its account afterwards.

use std::time::Duration;

use baler_monitoring::{Controller, ControllerBuilder};

use super::application::Outer;
use super::variant::Running;
use crate::harness::Failure;

/// The time limit for delivering the queues at the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The records that the probes make.
#[derive(Debug, Clone, Copy)]
pub enum Makes {
    /// None: a pattern deactivates all probes.
    Deactivated,
    /// Two for every call, and one for every call from outside, which has this depth.
    Events {
        /// The depth of a call from outside.
        depth: u32,
    },
    /// None: monitoring is off.
    Nothing,
    /// One for every call.
    One,
    /// One for some of the calls, or for many calls together.
    Some,
}

/// A controller that probes use.
struct Controlled {
    controller: Controller,
    outer: Outer,
    makes: Makes,
}

/// Starts a controller with the probes of `outer`, which make these records.
///
/// # Errors
///
/// The controller cannot be started.
pub fn start(
    builder: ControllerBuilder,
    outer: Outer,
    makes: Makes,
) -> Result<Box<dyn Running>, Failure> {
    // The only records are records of calls.
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
    Ok(Box::new(Controlled {
        controller,
        outer,
        makes,
    }))
}

impl Running for Controlled {
    fn outer(&self) -> Outer {
        self.outer
    }

    fn settle(&self) {
        // The report at the end counts records that cannot be delivered.
        self.controller.flush(PATIENCE).ok();
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<u64, Failure> {
        let report = self.controller.shutdown(PATIENCE);
        let emitted = match self.makes {
            Makes::Deactivated | Makes::Nothing => 0,
            Makes::One => calls,
            Makes::Events { depth } => calls * 2 + calls / u64::from(depth.max(1)),
            Makes::Some => report.emitted(),
        };
        if !report.adds_up() || report.emitted() != emitted {
            let reason = format!("{emitted} records were to be emitted: {report}");
            return Err(Failure::new(reason));
        }
        Ok(report.dropped().total())
    }
}
