//! What the owner of a writer and its thread share.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use baler_common::transport::{
    Capability, Chunk, Confirmation, Failure, Notify, NotifyCell, Rejected,
};

use super::bell::Bell;
use super::counts::AmqpWriterCounts;
use super::line::{Line, Publish};
use super::state::State;
use crate::gate::Gate;

/// What the owner of a writer and its thread share.
///
/// The owner publishes and takes answers itself; the thread does what takes waiting: it looks for
/// answers while somebody waits for them, and after the connection's health.
#[derive(Debug, Default)]
pub(super) struct Link {
    state: Mutex<State>,
    /// Wakes the thread.
    pub(super) bell: Arc<Bell>,
    /// The socket is behind it.
    pub(super) gate: Gate,
    /// Wakes an owner that closes.
    answered: Condvar,
    notify: NotifyCell,
}

/// What the thread is to do next.
#[derive(Debug)]
pub(super) enum Next {
    /// To look again when it is woken, and then.
    Wait(Option<Instant>),
    /// To say good-bye until then.
    Stop(Instant),
    /// To end: the connection is gone.
    Fail(Failure),
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the state, and has answers read and the thread woken for them if somebody
    /// waits for them from then on.
    fn with<T>(&self, action: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let done = action(&mut state);
        self.bell.set_wanted(state.wants_answers());
        self.gate.set_shut(state.needs_no_watching());
        done
    }

    /// Forgets what was not confirmed: a new connection is about to be made.
    pub(super) fn reset(&self) {
        self.with(State::reset);
    }

    /// The connection is made, and chunks are published like this.
    pub(super) fn open(&self, publish: Publish) {
        let waker = Waker::from(Arc::clone(&self.bell));
        self.with(|state| state.open(Line::new(publish, waker)));
    }

    /// The connection is about to be closed, or gone: what belongs to it ends on its thread.
    pub(super) fn detach(&self) {
        let line = self.with(|state| state.line.take());
        drop(line);
    }

    /// Why nothing can be offered.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.lock().failure.clone()
    }

    pub(super) fn counts(&self) -> AmqpWriterCounts {
        self.lock().counts
    }

    /// Takes a chunk unless the window is full or the broker blocks, or hands it back.
    pub(super) fn offer(&self, chunk: Chunk, capability: &Capability) -> Result<(), Rejected> {
        let unwatched = self.with(|state| state.offer(chunk, capability))?;
        if unwatched {
            self.bell.ring();
        }
        Ok(())
    }

    /// Says whether the owner waits for confirmations.
    pub(super) fn set_awaited(&self, awaited: bool) {
        let was = self.with(|state| std::mem::replace(&mut state.awaited, awaited));
        if awaited && !was {
            // The thread may have taken answers that it did not tell of.
            self.bell.ring();
        }
    }

    /// Takes the answers that are there and tells of them; what the thread does next.
    pub(super) fn look(&self, now: Instant, confirm_timeout: Duration) -> Next {
        let (tells, next) = self.with(|state| {
            let refused = state.collect();
            state.watch(now);
            let tells = state.is_untold && (refused || state.has_waiter());
            state.is_untold &= !tells;
            (tells, state.next(now, confirm_timeout))
        });
        if tells {
            self.answered.notify_all();
            self.notify.notify();
        }
        next
    }

    /// The broker blocks the connection, or does so no longer.
    pub(super) fn set_blocked(&self, blocked: bool) {
        self.with(|state| state.set_blocked(blocked));
        self.notify.notify();
    }

    /// Appends what was answered; yields why the connection is gone, if it is.
    pub(super) fn confirmations(
        &self,
        out: &mut Vec<Confirmation>,
        endpoint: &str,
    ) -> Option<Failure> {
        let (failure, ends, opens) = self.with(|state| {
            let worked = state.failure.is_none();
            let waiting = state.window.len();
            state.collect();
            state.hand_out(out, endpoint);
            let opens = state.lacks_room && state.window.len() < waiting;
            (
                state.failure.clone(),
                worked && state.failure.is_some(),
                opens,
            )
        });
        if ends {
            self.bell.ring();
        }
        if opens {
            // The window opened here: the thread has nothing to tell of any more.
            self.notify.notify();
        }
        failure
    }

    pub(super) fn set_notify(&self, notify: Arc<dyn Notify>) {
        self.notify.set(notify);
    }

    /// The connection is gone, or could not be made. Of a connection the first reason stays.
    pub(super) fn fail(&self, failure: Failure) {
        self.with(|state| {
            // What was answered before still counts.
            state.collect();
            state.fail(failure);
        });
        self.answered.notify_all();
        self.notify.notify();
    }

    /// The thread is to end, and may say good-bye until `by`.
    pub(super) fn stop(&self, by: Instant) {
        self.with(|state| {
            state.stop = Some(by);
            if state.failure.is_none() {
                state.failure = Some(Failure::retry("publish to", "it was closed"));
            }
        });
        self.bell.ring();
    }

    /// Waits until everything is answered, the connection is gone, or `by`; yields why not
    /// everything was answered.
    pub(super) fn drain(&self, by: Instant) -> Option<Failure> {
        self.set_awaited(true);
        let mut state = self.lock();
        if state.unopened {
            return None;
        }
        loop {
            if state.failure.is_some() {
                return state.failure.clone();
            }
            if state.window.is_empty() {
                return None;
            }
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let why = if state.counts.is_blocked {
                    "the broker blocks the connection"
                } else {
                    "not everything was confirmed in time"
                };
                return Some(Failure::retry("close", why));
            }
            let waited = self.answered.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tickets that are not answered, in order.
    pub(super) fn unconfirmed(&self) -> Vec<u64> {
        self.lock().window.tickets().collect()
    }
}

#[cfg(test)]
mod tests;
