//! Whether the medium can be reached, as the collector's events tell it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baler_monitoring::Event;

/// What is known of the connection to a medium.
#[derive(Debug)]
pub(super) struct Link {
    give_up: Duration,
    /// Read once a record, so apart from the rest.
    given_up: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Since when it cannot be reached; none while it can.
    down_since: Option<Instant>,
    last_error: Option<String>,
    /// The medium said that trying again cannot help.
    hopeless: bool,
    ended: bool,
}

impl Link {
    /// A link that is not up yet, and is given up when that lasts.
    pub(super) fn new(give_up: Duration) -> Self {
        Self {
            give_up,
            given_up: AtomicBool::new(false),
            state: Mutex::new(State {
                down_since: Some(Instant::now()),
                last_error: None,
                hopeless: false,
                ended: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Takes note of what the collector tells, and passes it on to the log.
    pub(super) fn told(&self, event: &Event) {
        match event {
            Event::Connected { medium } => {
                tracing::info!(medium, "connected");
                self.lock().down_since = None;
            }
            Event::Disconnected { error, retries } => {
                tracing::info!(%error, retries, "disconnected");
                let mut state = self.lock();
                state.down_since.get_or_insert_with(Instant::now);
                state.last_error = Some(error.to_string());
                state.hopeless |= !retries;
                self.changed.notify_all();
            }
            Event::Lost {
                sequence,
                records,
                reason,
                error,
            } => {
                let error = error.as_ref().map(ToString::to_string);
                tracing::warn!(sequence, records, %reason, error, "a chunk was given up");
            }
            Event::Panicked { place, records } => {
                tracing::error!(place, records, "a panic was caught");
            }
            Event::Quarantined(put_aside) => {
                let (record, reason) = (&put_aside.record, put_aside.reason);
                let (size, limit) = (put_aside.size_bytes, put_aside.limit_bytes);
                tracing::warn!(%record, %reason, size, limit, "records cannot be sent");
            }
            _ => {}
        }
    }

    /// Whether the medium was given up.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Gives the medium up if it cannot be reached for too long, or refused for good; says whether
    /// it is given up.
    pub(super) fn judge(&self) -> bool {
        let state = self.lock();
        let too_long = |since: Instant| since.elapsed() >= self.give_up;
        if state.hopeless || state.down_since.is_some_and(too_long) {
            self.given_up.store(true, Ordering::Release);
        }
        self.is_given_up()
    }

    /// What went wrong last.
    pub(super) fn last_error(&self) -> Option<String> {
        self.lock().last_error.clone()
    }

    /// Says that nobody needs the link any more.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    pub(super) fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Waits for a change, so long at most.
    pub(super) fn wait(&self, time: Duration) {
        let state = self.lock();
        if !state.ended {
            drop(self.changed.wait_timeout(state, time));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
