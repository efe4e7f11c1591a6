//! The one thread of all samplers, and their schedules.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::mutex::lock;
use baler_common::random::random;
#[cfg(feature = "sampling")]
use baler_connector_kieker::pattern::PatternList;

use super::proc::Root;
use super::sampler::Sampler;
#[cfg(feature = "sampling")]
use super::sampler::THREADS;
use super::sensor::{Context, Sample, Sensor};
use crate::clock::{monotonic, time_left};
use crate::collector::Event;
use crate::controller::WeakController;
use crate::queue::suppress;

/// A sampler and its period.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) sampler: Sampler,
    pub(crate) period: Duration,
    /// Whether each sample is taken at a random time within its period.
    pub(crate) is_jittered: bool,
}

/// The figures of a controller's samplers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SamplerStats {
    /// Records that were emitted and accepted.
    pub records: u64,
    /// Points of a schedule that were missed because the machine or the queue kept the thread busy.
    pub missed: u64,
    /// Samples that failed.
    pub failed: u64,
    /// Reads of a thread's stack that found it in change. The sampler of threads reads again, up to
    /// three times.
    #[cfg(feature = "sampling")]
    pub torn: u64,
}

/// The samplers of a controller, from outside of their thread.
#[derive(Debug, Default)]
pub(crate) struct Samplers {
    thread: Mutex<Option<SamplerThread>>,
    records: AtomicU64,
    missed: AtomicU64,
    failed: AtomicU64,
    #[cfg(feature = "sampling")]
    torn: AtomicU64,
    /// The sites that the sampler of threads sees; `None` without this sampler.
    #[cfg(feature = "sampling")]
    sampled_sites: Mutex<Option<Arc<PatternList>>>,
}

/// Nothing is sent over its channels. Each of them only shows that one of its ends is gone.
#[derive(Debug)]
struct SamplerThread {
    /// The thread runs as long as this end exists.
    goes_on: Option<Sender<()>>,
    /// The other end exists as long as the thread runs.
    ended: Receiver<()>,
}

impl Samplers {
    pub(crate) fn stats(&self) -> SamplerStats {
        SamplerStats {
            records: self.records.load(Ordering::Relaxed),
            missed: self.missed.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            #[cfg(feature = "sampling")]
            torn: self.torn.load(Ordering::Relaxed),
        }
    }

    /// Starts the thread, if there is a sampler.
    ///
    /// # Errors
    ///
    /// The operating system cannot start another thread.
    pub(crate) fn start(
        self: &Arc<Self>,
        tasks: &[Task],
        controller: WeakController,
    ) -> io::Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        #[cfg(feature = "sampling")]
        if tasks.iter().any(|task| task.sampler.signature() == THREADS) {
            *lock(&self.sampled_sites) = Some(Arc::default());
        }
        let start = monotonic();
        let running = tasks.iter().map(|task| Running {
            sampler: task.sampler,
            sensor: task.sampler.sensor(),
            schedule: Schedule::new(start, task),
            #[cfg(feature = "sampling")]
            round: 0,
            is_reported: false,
        });
        let (goes_on, stop) = mpsc::channel();
        let (runs, ended) = mpsc::channel();
        let worker = Worker {
            samplers: Arc::clone(self),
            root: Root::new("/"),
            running: running.collect(),
            controller,
            out: Vec::new(),
            stop,
            _runs: runs,
        };
        thread::Builder::new()
            .name("baler-samplers".into())
            .spawn(move || worker.run())?;
        *lock(&self.thread) = Some(SamplerThread {
            goes_on: Some(goes_on),
            ended,
        });
        Ok(())
    }

    /// Asks the thread to end.
    pub(crate) fn stop(&self) {
        if let Some(thread) = &mut *lock(&self.thread) {
            thread.goes_on = None;
        }
    }

    /// Waits until the thread has ended, or until `by`.
    pub(crate) fn wait(&self, by: Instant) {
        if let Some(thread) = &*lock(&self.thread) {
            // It has ended, or the time is over: in both cases nothing is left to do.
            thread.ended.recv_timeout(time_left(by)).ok();
        }
    }

    /// Replaces the sites that the sampler of threads sees, if there is this sampler.
    #[cfg(feature = "sampling")]
    pub(crate) fn set_sampled_sites(&self, patterns: PatternList) {
        if let Some(sampled) = &mut *lock(&self.sampled_sites) {
            *sampled = Arc::new(patterns);
        }
    }

    #[cfg(feature = "sampling")]
    pub(crate) fn sampled_sites(&self) -> Option<Arc<PatternList>> {
        lock(&self.sampled_sites).clone()
    }
}

/// A sampler in operation.
struct Running {
    sampler: Sampler,
    sensor: Box<dyn Sensor>,
    schedule: Schedule,
    /// The number of points in time so far.
    #[cfg(feature = "sampling")]
    round: u64,
    /// Whether its failure was reported; reset when it works again.
    is_reported: bool,
}

struct Worker {
    samplers: Arc<Samplers>,
    root: Root,
    running: Vec<Running>,
    controller: WeakController,
    out: Vec<Sample>,
    /// The other end is gone when the thread must end.
    stop: Receiver<()>,
    /// Its drop releases all waiting threads, however the thread ends.
    _runs: Sender<()>,
}

impl Worker {
    fn run(mut self) {
        while let Some(next) = self.running.iter().map(|it| it.schedule.due).min() {
            let is_due = self.stop.recv_timeout(time_left(next)) == Err(RecvTimeoutError::Timeout);
            if !is_due || !self.sample() {
                return;
            }
        }
    }

    /// Takes the samples that are due; returns whether the controller still exists.
    fn sample(&mut self) -> bool {
        let Self {
            samplers,
            root,
            running,
            controller,
            out,
            ..
        } = self;
        let Some(controller) = controller.upgrade() else {
            return false;
        };
        running.retain_mut(|task| {
            let now = monotonic();
            if task.schedule.due > now {
                return true;
            }
            #[cfg(feature = "sampling")]
            {
                task.round = task.round.wrapping_add(1);
            }
            let patterns = controller.switch().list();
            let signature = task.sampler.signature();
            if !controller.is_enabled() || !patterns.is_active(signature) {
                // The next sample must not be a mean over the time until then.
                task.sensor = task.sampler.sensor();
                return task.schedule.advance(now).is_some();
            }
            let context = Context {
                root,
                at: now,
                unix_ns: controller.clock().unix_ns(),
                hostname: controller.hostname(),
                patterns: &patterns,
                #[cfg(feature = "sampling")]
                is_installed: controller.is_installed(),
                #[cfg(feature = "sampling")]
                collector_ns: controller.collector_ns(),
                #[cfg(feature = "sampling")]
                round: task.round,
                #[cfg(feature = "sampling")]
                torn: &samplers.torn,
            };
            out.clear();
            let sampled = {
                // Reading files must not monitor itself, but its records must be accepted.
                let _suppressed = suppress();
                catch_unwind(AssertUnwindSafe(|| task.sensor.sample(&context, out)))
            };
            let (result, survives) = match sampled {
                Ok(result) => (result, true),
                Err(_) => (Err(io::Error::other("it panicked")), false),
            };
            // Records from before an error are good.
            for sample in out.drain(..) {
                if sample.emit(&controller) {
                    samplers.records.fetch_add(1, Ordering::Relaxed);
                }
            }
            match result {
                Ok(()) => task.is_reported = false,
                Err(error) => {
                    samplers.failed.fetch_add(1, Ordering::Relaxed);
                    if !std::mem::replace(&mut task.is_reported, true) {
                        controller.post_event(Event::SamplerFailed {
                            sampler: task.sampler.name(),
                            error: Arc::new(error),
                        });
                    }
                }
            }
            let now = monotonic();
            let wait = task.sensor.wait();
            if let Some(due) = wait.and_then(|wait| now.checked_add(wait)) {
                (task.schedule.start, task.schedule.due) = (due, due);
                return survives;
            }
            match task.schedule.advance(now) {
                Some(missed) => {
                    samplers.missed.fetch_add(missed, Ordering::Relaxed);
                    survives
                }
                None => false,
            }
        });
        true
    }
}

/// Points in time at a fixed distance, or one at a random time within each period, whatever happens
/// in between. So neither form drifts.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    /// The start of the present period.
    start: Instant,
    period: Duration,
    is_jittered: bool,
    /// The point in the present period.
    due: Instant,
}

impl Schedule {
    /// Due at once, and then in each period.
    const fn new(start: Instant, task: &Task) -> Self {
        Self {
            start,
            period: task.period,
            is_jittered: task.is_jittered,
            due: start,
        }
    }

    /// Advances to the next period; returns the number of missed points. Points at a fixed distance
    /// are also missed in the period that has begun meanwhile.
    ///
    /// Returns `None` if the next point is beyond the range of an instant.
    fn advance(&mut self, now: Instant) -> Option<u64> {
        let late = now.saturating_duration_since(self.start).as_nanos();
        let begun = u32::try_from(late.checked_div(self.period.as_nanos())?).ok()?;
        let missed = if self.is_jittered {
            begun.saturating_sub(1)
        } else {
            begun
        };
        let step = self.period.checked_mul(missed.checked_add(1)?)?;
        self.start = self.start.checked_add(step)?;
        let delay = if self.is_jittered {
            random_part(self.period)
        } else {
            Duration::ZERO
        };
        self.due = self.start.checked_add(delay)?;
        Some(u64::from(missed))
    }
}

/// Returns a random time below this one.
fn random_part(period: Duration) -> Duration {
    let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(random() % period.max(1))
}

#[cfg(test)]
mod tests;
