//! Samplers of a controller: which ones, when they begin and end.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::settings::StartError;
use super::{Controller, ControllerBuilder, Handle};
use crate::collector::Event;
use crate::samplers::{Sampler, SamplerStats, Task};

/// How long a shutdown waits at most for a sample that is being taken.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// # Samplers
///
/// With the feature `samplers`.
impl ControllerBuilder {
    /// Samples at a fixed rate: at once, then after each period, of 1 ms at least. Default none.
    ///
    /// All samplers share one thread (Kieker's `kieker.monitoring.periodicSensorsExecutorPoolSize`
    /// is 1 by default, too), which ends with the controller, and which nothing but time wakes.
    /// Points in time that it misses are skipped and counted ([`Controller::sampler_stats`]).
    /// It takes no samples while the controller is disabled, or a pattern deactivates the sampler's
    /// signature; the first one afterwards primes anew.
    pub fn sampler(mut self, sampler: Sampler, period: Duration) -> Self {
        self.samplers.push(Task { sampler, period });
        self
    }
}

/// Whether these samplers can be.
pub(super) fn check(tasks: &[Task]) -> Result<(), StartError> {
    if !tasks.is_empty() && !cfg!(any(target_os = "linux", target_os = "android")) {
        return Err(StartError::SamplersNeedLinux);
    }
    for task in tasks {
        if task.period < Duration::from_millis(1) {
            return Err(StartError::TooSmall {
                setting: "a sampler's period in milliseconds",
                found: 0,
                least: 1,
            });
        }
    }
    Ok(())
}

/// # Samplers
///
/// With the feature `samplers`.
impl Controller {
    /// What the samplers did so far.
    pub fn sampler_stats(&self) -> SamplerStats {
        self.handle.samplers.stats()
    }

    pub(super) fn start_samplers(&self, tasks: &[Task]) -> Result<(), StartError> {
        let weak = WeakController(Arc::downgrade(&self.handle));
        let started = self.handle.samplers.start(tasks, weak);
        started.map_err(StartError::SamplerThread)
    }

    /// Ends the samplers' thread; waits for a part of the time that a shutdown has.
    pub(super) fn end_samplers(&self, now: Instant, timeout: Duration) {
        self.handle.samplers.stop();
        if let Some(by) = now.checked_add((timeout / 4).min(LONGEST_WAIT)) {
            self.handle.samplers.wait(by);
        }
    }

    /// Lets the collector's thread pass an event to the application.
    pub(crate) fn tell(&self, event: Event) {
        self.shared().post(event);
    }
}

/// A controller that its samplers do not keep alive.
#[derive(Debug)]
pub(crate) struct WeakController(Weak<Handle>);

impl WeakController {
    pub(crate) fn upgrade(&self) -> Option<Controller> {
        let handle = self.0.upgrade()?;
        Some(Controller { handle })
    }
}
