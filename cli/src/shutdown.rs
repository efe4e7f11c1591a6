//! SIGINT, SIGTERM and SIGHUP: the first drains, the second ends at once. A panic of a thread drains,
//! too.
//!
//! first signal, panic -> [`Shutdown::request`], the deadline runs -> the command drains and ends
//!              \-> a thread that reports the chunks left, and ends a process that hangs

use std::io;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::exit::Code;
use crate::output;

/// The part of the shutdown timeout that is kept for the figures and the end of the process, at
/// most a tenth of it. The process thus ends before its caller loses patience.
const KEPT: Duration = Duration::from_millis(250);

/// How long after the timeout a hanging process is ended. A busy machine needs a moment to reap
/// threads and to report the figures.
const GRACE: Duration = Duration::from_secs(2);

/// Whether the program was asked to end, and by when.
///
/// Clones share the state. Commands wait on it to let time pass.
#[derive(Clone)]
pub(crate) struct Shutdown {
    state: Arc<State>,
    timeout: Duration,
}

#[derive(Default)]
struct State {
    requested: AtomicBool,
    panicked: AtomicBool,
    deadline: Mutex<Option<Instant>>,
    changed: Condvar,
    /// The function that counts the chunks left to drain, if the first signal is to show them.
    draining: Mutex<Option<Box<dyn Fn() -> u64 + Send>>>,
}

impl Shutdown {
    /// Creates a shutdown that only [`Shutdown::request`] starts.
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
        // A write beyond the limit of file sizes (`ulimit -f`) now fails, as on a full disk. Without
        // a handler, its signal would end the process.
        flag::register(SIGXFSZ, Arc::default())?;
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        if !ignores_hangups() {
            signals.add_signal(SIGHUP)?;
        }
        let shutdown = self.clone();
        thread::Builder::new()
            .name("baler-signals".to_owned())
            .spawn(move || {
                for signal in &mut signals {
                    if shutdown.is_requested() {
                        // By the convention of shells, the code is 128 plus the signal's number.
                        // Destructors may hang, and the user does not wait.
                        signal_hook::low_level::exit(128 + signal);
                    }
                    shutdown.request();
                    shutdown.watch_draining(Some(signal));
                }
            })?;
        Ok(())
    }

    /// Asks the program to end when a thread panics, from now on. Another thread may wait for that
    /// thread for ever.
    ///
    /// The runtime catches a panic of a task, which ends one connection: peers must not be able to
    /// end the program.
    pub(crate) fn request_on_panic(&self) {
        let shutdown = self.clone();
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            print(info);
            shutdown.state.panicked.store(true, Ordering::Release);
            if tokio::task::try_id().is_none() && !shutdown.is_requested() {
                shutdown.watch_draining(None);
            }
        }));
    }

    /// Whether any thread or task panicked.
    pub(crate) fn has_panicked(&self) -> bool {
        self.state.panicked.load(Ordering::Acquire)
    }

    /// Sets the function that counts the chunks left to drain. The first signal then shows this
    /// number.
    pub(crate) fn drains(&self, left: impl Fn() -> u64 + Send + 'static) {
        let draining = self.state.draining.lock();
        *draining.unwrap_or_else(PoisonError::into_inner) = Some(Box::new(left));
    }

    /// Asks the program to end, shows how many chunks are left to drain, and ends the process if it
    /// still runs after its time.
    ///
    /// It runs on a thread of its own: standard error may be stalled, a second signal may come, and
    /// a thread that panics may hold the locks of this state.
    fn watch_draining(&self, signal: Option<i32>) {
        let shutdown = self.clone();
        let watch = move || {
            shutdown.request();
            tracing::info!(signal, "asked to end: draining");
            let draining = shutdown.state.draining.lock();
            let draining = draining.unwrap_or_else(PoisonError::into_inner).take();
            let deadline = shutdown.deadline();
            let end = deadline + KEPT + GRACE;
            let time = time_until(deadline);
            let until = (SystemTime::now() + time).duration_since(UNIX_EPOCH);
            // A clock before 1970 has no time of day to show.
            if let (Some(left), Ok(until)) = (draining, until) {
                let minutes = until.as_secs() / 60;
                output::say(format_args!(
                    "draining, {} chunks left, until {:02}:{:02}:{:02} UTC at most ({} s), press \
                     again to stop",
                    output::number(left()),
                    minutes / 60 % 24,
                    minutes % 60,
                    until.as_secs() % 60,
                    time.as_secs_f64().round(),
                ));
            }
            while let Some(left) = end.checked_duration_since(Instant::now()) {
                thread::park_timeout(left);
            }
            // Ends without destructors, because they may hang, too.
            let code = match shutdown.has_panicked() {
                true => Code::Internal,
                false => Code::Incomplete,
            };
            signal_hook::low_level::exit(i32::from(code.number()));
        };
        let thread = thread::Builder::new().name("baler-draining".to_owned());
        if let Err(error) = thread.spawn(watch) {
            tracing::warn!(%error, "nobody watches whether draining ends in time");
        }
    }

    /// Returns how long draining may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Asks the program to end, and starts the one deadline.
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

    /// Returns the time by which everything has to be delivered and settled, or given up. The
    /// deadline began with the request; without a request it begins now. It is a little before the
    /// end of [`Self::timeout`], so that the process ends within that time.
    pub(crate) fn deadline(&self) -> Instant {
        self.lock().unwrap_or_else(|| self.deadline_from_now())
    }

    /// Returns until when to wait for a stalled output, or `None` for no limit before a request. It
    /// is a little before [`Self::deadline`], so that unwritten chunks can be given back.
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
        Instant::now() + self.timeout - KEPT.min(self.timeout / 10)
    }

    /// Waits until `until` or the request. Returns whether the program was asked to end.
    pub(crate) fn wait_until(&self, until: Instant) -> bool {
        let mut deadline = self.lock();
        while deadline.is_none() {
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return false;
            };
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

/// Whether a signal ended a command before the end of its source, if the source has an end. A source
/// without one is followed: its command is complete when what it took is delivered.
pub(crate) fn is_partial(reached_end: Option<bool>, shutdown: &Shutdown) -> bool {
    reached_end == Some(false) && shutdown.is_requested()
}

/// Returns how long it is until then; zero if it is over.
pub(crate) fn time_until(then: Instant) -> Duration {
    then.saturating_duration_since(Instant::now())
}

/// Whether the process was started to outlive its terminal, as by `nohup`.
fn ignores_hangups() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        ignored.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
    })
}

#[cfg(test)]
mod tests;
