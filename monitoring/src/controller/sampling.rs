//! The samplers of a controller: their settings, their start and their end.

#[cfg(feature = "sampling")]
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

#[cfg(feature = "sampling")]
use baler_connector_kieker::pattern::PatternList;

#[cfg(feature = "sampling")]
use super::installed::{active_key, refresh_active};
use super::settings::StartError;
use super::{Controller, ControllerBuilder, Handle};
use crate::collector::Event;
#[cfg(feature = "sampling")]
use crate::samplers::THREADS;
use crate::samplers::{Sampler, SamplerStats, Task};
#[cfg(feature = "sampling")]
use crate::sampling::Hybrid;

/// The longest time that a shutdown waits for a sample in progress.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// # Samplers
///
/// With the feature `samplers`.
impl ControllerBuilder {
    /// Samples at a fixed rate: at once, then after each period, which is at least 1 ms. Default
    /// none.
    ///
    /// All samplers share one thread (Kieker's `kieker.monitoring.periodicSensorsExecutorPoolSize`
    /// is 1 by default, too). It ends with the controller, and wakes only when a sample is due.
    /// Points in time that it misses are skipped and counted ([`Controller::sampler_stats`]). It
    /// takes no samples while the controller is disabled, or while a pattern deactivates the
    /// sampler's signature. The first sample afterwards only primes the rates again.
    pub fn sampler(mut self, sampler: Sampler, period: Duration) -> Self {
        self.samplers.push(Task {
            sampler,
            period,
            is_jittered: false,
        });
        self
    }

    /// As [`sampler`](Self::sampler), but takes each sample at a random time within its period. So
    /// work that keeps in step with the period is not seen too often, or never.
    pub fn jittered_sampler(mut self, sampler: Sampler, period: Duration) -> Self {
        self.samplers.push(Task {
            sampler,
            period,
            is_jittered: true,
        });
        self
    }

    /// Lets only the probes of hot spots record, within a budget of CPU time: [`Sampler::Hybrid`].
    /// Default: all active probes record. With the feature `sampling`.
    ///
    /// [Patterns](Self::patterns) restrict the probes that may record, and
    /// [`sampled_sites`](Self::sampled_sites) those that may be looked at.
    #[cfg(feature = "sampling")]
    pub fn hybrid(self, hybrid: Hybrid) -> Self {
        self.sampler(Sampler::Hybrid(hybrid), Duration::from_millis(10))
    }

    /// The sites whose calls [`Sampler::Threads`] sees: those that these patterns activate, and
    /// those that no pattern matches. Default no patterns: the whole program. With the feature
    /// `sampling`.
    ///
    /// It does not matter whether the sites record: an inactive probe can be sampled.
    #[cfg(feature = "sampling")]
    pub fn sampled_sites(mut self, patterns: PatternList) -> Self {
        self.sampled_sites = patterns;
        self
    }
}

/// Checks whether these samplers are possible.
pub(super) fn check(tasks: &[Task]) -> Result<(), StartError> {
    if !tasks.iter().all(|task| task.sampler.is_possible()) {
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
    /// Returns the figures of the samplers so far.
    pub fn sampler_stats(&self) -> SamplerStats {
        self.handle.samplers.stats()
    }

    /// Replaces the [sites that are sampled](ControllerBuilder::sampled_sites). Calls in progress
    /// are no longer seen. With the feature `sampling`.
    ///
    /// Without [`Sampler::Threads`], or while a pattern deactivates `%THREADS`, no site is sampled.
    #[cfg(feature = "sampling")]
    pub fn set_sampled_sites(&self, patterns: PatternList) {
        if self.shared().is_forked() {
            return;
        }
        self.handle.samplers.set_sampled_sites(patterns);
        refresh_active(self.shared());
    }

    /// Whether probes record for this controller now.
    #[cfg(feature = "sampling")]
    pub(crate) fn is_installed(&self) -> bool {
        active_key() == self.shared().queues.key()
    }

    /// Returns the CPU time of the collector's thread so far, in nanoseconds.
    #[cfg(feature = "sampling")]
    pub(crate) fn collector_ns(&self) -> u64 {
        self.shared().collector_ns.load(Ordering::Relaxed)
    }

    /// Returns the sites that are sampled while these patterns are in force; `None` if none is.
    #[cfg(feature = "sampling")]
    pub(super) fn sampled_sites(&self, patterns: &PatternList) -> Option<Arc<PatternList>> {
        patterns
            .is_active(THREADS)
            .then(|| self.handle.samplers.sampled_sites())
            .flatten()
    }

    pub(super) fn start_samplers(&self, tasks: &[Task]) -> Result<(), StartError> {
        let weak = WeakController(Arc::downgrade(&self.handle));
        let started = self.handle.samplers.start(tasks, weak);
        started.map_err(StartError::SamplerThread)
    }

    /// Ends the samplers' thread; waits for a part of the shutdown's time.
    pub(super) fn end_samplers(&self, now: Instant, timeout: Duration) {
        self.handle.samplers.stop();
        if let Some(by) = now.checked_add((timeout / 4).min(LONGEST_WAIT)) {
            self.handle.samplers.wait(by);
        }
    }

    /// Lets the collector's thread pass an event to the application.
    pub(crate) fn post_event(&self, event: Event) {
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
