//! The one thread of all samplers.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::proc::Root;
use super::sampler::{Context, Sample, Sampler, Sensor};
use super::schedule::Schedule;
use crate::clock::monotonic;
use crate::collector::Event;
use crate::controller::WeakController;
use crate::queue::suppress;

/// A sampler and its period.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) sampler: Sampler,
    pub(crate) period: Duration,
}

/// What the samplers of a controller did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SamplerStats {
    /// Records that were emitted and taken.
    pub records: u64,
    /// Points of a schedule that passed because the machine or the queue kept the thread busy.
    pub missed: u64,
    /// Samples that failed.
    pub failed: u64,
}

/// The samplers of a controller, from outside of their thread.
#[derive(Debug, Default)]
pub(crate) struct Samplers {
    state: Mutex<State>,
    changed: Condvar,
    records: AtomicU64,
    missed: AtomicU64,
    failed: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    runs: bool,
    stop: bool,
}

impl Samplers {
    pub(crate) fn stats(&self) -> SamplerStats {
        SamplerStats {
            records: self.records.load(Ordering::Relaxed),
            missed: self.missed.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Starts the thread, if there is anything to do.
    ///
    /// # Errors
    ///
    /// The operating system's, when it has no thread left.
    pub(crate) fn start(
        self: &Arc<Self>,
        tasks: &[Task],
        controller: WeakController,
    ) -> io::Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        let start = monotonic();
        let running = tasks.iter().map(|task| Running {
            sampler: task.sampler,
            sensor: task.sampler.sensor(),
            schedule: Schedule::new(start, task.period),
            is_told: false,
        });
        let worker = Worker {
            samplers: Arc::clone(self),
            root: Root::new("/"),
            running: running.collect(),
            controller,
            out: Vec::new(),
        };
        self.lock().runs = true;
        thread::Builder::new()
            .name("baler-samplers".into())
            .spawn(move || worker.run())
            .map(drop)
            .inspect_err(|_| self.lock().runs = false)
    }

    /// Asks the thread to end.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits until the thread has ended, at most until then.
    pub(crate) fn wait(&self, by: Instant) {
        let left = by.saturating_duration_since(monotonic());
        let ended = self
            .changed
            .wait_timeout_while(self.lock(), left, |state| state.runs);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits for this time or until the thread is to end; whether it is.
    fn pause(&self, until: Option<Instant>) -> bool {
        let now = monotonic();
        let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(now));
        let state = self
            .changed
            .wait_timeout_while(self.lock(), left, |state| !state.stop)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        state.stop
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sampler at work.
struct Running {
    sampler: Sampler,
    sensor: Box<dyn Sensor>,
    schedule: Schedule,
    /// Whether its failure was told; until it works again.
    is_told: bool,
}

struct Worker {
    samplers: Arc<Samplers>,
    root: Root,
    running: Vec<Running>,
    controller: WeakController,
    out: Vec<Sample>,
}

impl Worker {
    fn run(mut self) {
        let _ended = EndGuard(Arc::clone(&self.samplers));
        loop {
            let next = self.running.iter().map(|it| it.schedule.next()).min();
            if next.is_none() || self.samplers.pause(next) || !self.sample() {
                return;
            }
        }
    }

    /// Takes the samples that are due; whether anyone still wants some.
    fn sample(&mut self) -> bool {
        let Self {
            samplers,
            root,
            running,
            controller,
            out,
        } = self;
        let Some(controller) = controller.upgrade() else {
            return false;
        };
        running.retain_mut(|task| {
            let now = monotonic();
            if task.schedule.next() > now {
                return true;
            }
            let verdicts = controller.verdicts();
            let signature = task.sensor.signature();
            if !controller.is_enabled() || !verdicts.is_active(verdicts.action(signature)) {
                // What is sampled later must not be the mean of the time until then.
                task.sensor.forget();
                return task.schedule.advance(now).is_some();
            }
            let context = Context {
                root,
                at: now,
                unix_ns: controller.clock().unix_ns(),
                hostname: controller.hostname(),
                verdicts: &verdicts,
            };
            out.clear();
            let sampled = {
                // What reads files must not be monitored by itself; its records must be taken.
                let _suppressed = suppress();
                catch_unwind(AssertUnwindSafe(|| task.sensor.sample(&context, out)))
            };
            let (result, survives) = match sampled {
                Ok(result) => (result, true),
                Err(_) => (Err(io::Error::other("it panicked")), false),
            };
            // What was found before an error is good.
            for sample in out.drain(..) {
                if sample.emit(&controller) {
                    samplers.records.fetch_add(1, Ordering::Relaxed);
                }
            }
            match result {
                Ok(()) => task.is_told = false,
                Err(error) => {
                    samplers.failed.fetch_add(1, Ordering::Relaxed);
                    if !std::mem::replace(&mut task.is_told, true) {
                        controller.tell(Event::SamplerFailed {
                            sampler: task.sampler.name(),
                            error: Arc::new(error),
                        });
                    }
                }
            }
            match task.schedule.advance(monotonic()) {
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

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let samplers: Vec<_> = self.running.iter().map(|it| it.sampler).collect();
        f.debug_struct("Worker")
            .field("samplers", &samplers)
            .finish_non_exhaustive()
    }
}

/// Lets nobody wait for a thread that has ended, however it ended.
struct EndGuard(Arc<Samplers>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.lock().runs = false;
        self.0.changed.notify_all();
    }
}
