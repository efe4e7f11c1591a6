//! SIGINT and SIGTERM: the first drains, the second ends at once.
//!
//! first signal -> [`Shutdown::request`], the deadline runs -> the command drains and ends
//!              \-> a thread that tells what is left, and ends a process that hangs

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Code;
use crate::output;

/// What is kept of the time for ending, a tenth of it at most: for the figures to be told and the
/// process to be gone before whoever asked for the end loses patience.
const KEPT: Duration = Duration::from_millis(250);

/// How long after its time a process that hangs is ended. A busy machine needs a moment to reap
/// threads and to tell the figures.
const GRACE: Duration = Duration::from_secs(2);

/// Whether the program was asked to end, and by when.
///
/// Cloning shares. Waiting on it is how a command waits for time to pass.
#[derive(Clone)]
pub(crate) struct Shutdown {
    state: Arc<State>,
    timeout: Duration,
}

#[derive(Default)]
struct State {
    requested: AtomicBool,
    deadline: Mutex<Option<Instant>>,
    changed: Condvar,
    /// How many chunks the command has to drain, if the first signal is to show it.
    draining: Mutex<Option<Box<dyn Fn() -> u64 + Send>>>,
}

impl Shutdown {
    /// A shutdown that nobody asks for but [`Shutdown::request`].
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            state: Arc::new(State::default()),
            timeout,
        }
    }

    /// Listens to signals from now on, on a thread of its own.
    ///
    /// # Errors
    ///
    /// The operating system refuses the handlers or the thread.
    pub(crate) fn listen(&self) -> io::Result<()> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let shutdown = self.clone();
        thread::Builder::new()
            .name("baler-signals".to_owned())
            .spawn(move || {
                for signal in &mut signals {
                    if shutdown.is_requested() {
                        // The convention of shells: 128 and the signal's number.
                        std::process::exit(128_i32.saturating_add(signal));
                    }
                    shutdown.request();
                    shutdown.watch_draining(signal);
                }
            })?;
        Ok(())
    }

    /// Says how many chunks the command has to drain when it is asked to end. The first signal then
    /// shows this number.
    pub(crate) fn drains(&self, left: impl Fn() -> u64 + Send + 'static) {
        let draining = self.state.draining.lock();
        *draining.unwrap_or_else(PoisonError::into_inner) = Some(Box::new(left));
    }

    /// Shows what is left to drain, and ends the process if it still runs after its time.
    ///
    /// This is a thread of its own: standard error may be stalled, and a second signal may come.
    fn watch_draining(&self, signal: i32) {
        let draining = self.state.draining.lock();
        let draining = draining.unwrap_or_else(PoisonError::into_inner).take();
        let end = self.deadline() + KEPT + GRACE;
        let watch = move || {
            tracing::info!(signal, "asked to end: draining");
            if let Some(left) = draining {
                output::say(format_args!(
                    "draining, {} chunks left, press again to stop",
                    output::number(left())
                ));
            }
            while let Some(left) = end.checked_duration_since(Instant::now()) {
                thread::park_timeout(left);
            }
            // What hangs cannot be waited for, not even its destructors.
            signal_hook::low_level::exit(i32::from(Code::Incomplete.number()));
        };
        let thread = thread::Builder::new().name("baler-draining".to_owned());
        if let Err(error) = thread.spawn(watch) {
            tracing::warn!(%error, "nobody watches whether draining ends in time");
        }
    }

    /// How long draining may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Asks the program to end; the one deadline begins to run.
    pub(crate) fn request(&self) {
        let mut deadline = self.lock();
        deadline.get_or_insert_with(|| self.deadline_from_now());
        self.state.requested.store(true, Ordering::Release);
        self.state.changed.notify_all();
    }

    /// Whether the program was asked to end.
    pub(crate) fn is_requested(&self) -> bool {
        self.state.requested.load(Ordering::Acquire)
    }

    /// By when everything has to be delivered and settled, or given up: the deadline that began with
    /// the request, or, when there was none, one that begins now. It is a little before
    /// [`Self::timeout`] is over, so that the process ends within that.
    pub(crate) fn deadline(&self) -> Instant {
        self.lock().unwrap_or_else(|| self.deadline_from_now())
    }

    /// Until when to wait for an output that takes nothing; for as long as it takes while nobody has
    /// asked for the end. A little before [`Self::deadline`], so that what was not written can be
    /// given back.
    pub(crate) fn output_deadline(&self) -> Option<Instant> {
        let deadline = *self.lock();
        deadline.map(|deadline| deadline.checked_sub(self.timeout / 10).unwrap_or(deadline))
    }

    /// Whether the deadline is over.
    pub(crate) fn is_over(&self) -> bool {
        self.lock()
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn deadline_from_now(&self) -> Instant {
        Instant::now() + self.timeout.saturating_sub(KEPT.min(self.timeout / 10))
    }

    /// Waits until `until` or the request; returns whether the program was asked to end.
    pub(crate) fn wait_until(&self, until: Instant) -> bool {
        let mut deadline = self.lock();
        while deadline.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            deadline = self
                .state
                .changed
                .wait_timeout(deadline, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.state
            .deadline
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
