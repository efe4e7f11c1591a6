//! The state of a connection: chunks that are not written or not confirmed, and its failure. The
//! owner of a writer and its thread share it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, DeliveryReport, Failure, Notify as _, NotifyCell, Outcome, Rejected, Window,
};
use tokio::sync::Notify;

#[derive(Debug)]
pub(super) struct WriterState {
    pub(super) notify: NotifyCell,
    state: Mutex<State>,
    /// Wakes the thread that writes.
    work: Notify,
    /// Wakes the thread after a failure, whatever it waits for.
    failed: Notify,
    /// Wakes the owner while it closes.
    answered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The reason why no chunk can be offered.
    failure: Option<Failure>,
    /// Chunks that were offered and not yet passed to the thread that writes.
    queue: VecDeque<Chunk>,
    /// Chunks that were offered and not acknowledged, `queue` included.
    window: Window,
    /// The number of acknowledged chunks of this connection.
    acknowledged: u64,
    /// Confirmed tickets that the owner has not fetched.
    confirmed: Vec<u64>,
    /// Whether the owner closes and offers no more chunks.
    closing: bool,
    /// Whether the last offer was rejected because the window was full.
    lacks_room: bool,
}

/// The next frames that the thread writes.
#[derive(Debug)]
pub(super) enum Work {
    Bye,
    Write,
}

impl Default for WriterState {
    fn default() -> Self {
        Self {
            notify: NotifyCell::default(),
            state: Mutex::new(State {
                failure: Some(Failure::retry("write to", "it was not opened")),
                ..State::default()
            }),
            work: Notify::new(),
            failed: Notify::new(),
            answered: Condvar::new(),
        }
    }
}

impl WriterState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clears the state for the next connection.
    pub(super) fn reset(&self) {
        *self.lock() = State::default();
    }

    /// Returns the reason why no chunk can be offered.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.lock().failure.clone()
    }

    /// Accepts a chunk, or returns it if the window is full.
    pub(super) fn offer(&self, chunk: Chunk, capability: &Capability) -> Result<(), Rejected> {
        let mut state = self.lock();
        state.lacks_room = !state.window.take(&chunk, capability);
        if state.lacks_room {
            return Err(Rejected::full(chunk));
        }
        state.queue.push_back(chunk);
        drop(state);
        self.work.notify_one();
        Ok(())
    }

    /// Appends the confirmations since the last call. Returns the failure of the connection, if
    /// any.
    pub(super) fn delivery_reports(&self, out: &mut Vec<DeliveryReport>) -> Option<Failure> {
        let mut state = self.lock();
        out.extend(state.confirmed.drain(..).map(|ticket| DeliveryReport {
            ticket,
            outcome: Outcome::Confirmed,
        }));
        state.failure.clone()
    }

    /// Waits for the next frames to write. Moves chunks into `chunks`, which must be empty.
    pub(super) async fn work(&self, chunks: &mut VecDeque<Chunk>) -> Work {
        loop {
            {
                let mut state = self.lock();
                if !state.queue.is_empty() {
                    std::mem::swap(chunks, &mut state.queue);
                    return Work::Write;
                }
                if state.closing && state.window.is_empty() {
                    return Work::Bye;
                }
            }
            self.work.notified().await;
        }
    }

    /// Waits until the connection has failed.
    pub(super) async fn failed(&self) {
        while self.lock().failure.is_none() {
            self.failed.notified().await;
        }
    }

    /// Notes how many chunks of the connection the receiver has settled. Returns whether the number
    /// grew. The caller calls [`tell_confirmed`](Self::tell_confirmed) afterwards.
    ///
    /// # Errors
    ///
    /// The number is impossible. The error is the lowest and the highest possible number.
    pub(super) fn acknowledge(&self, settled: u64) -> Result<bool, (u64, u64)> {
        let mut state = self.lock();
        let low = state.acknowledged;
        let unacknowledged = u64::try_from(state.window.len() - state.queue.len());
        let high = low.saturating_add(unacknowledged.unwrap_or(u64::MAX));
        if !(low..=high).contains(&settled) {
            return Err((low, high));
        }
        for _ in low..settled {
            let ticket = state.window.remove_oldest();
            state.confirmed.extend(ticket);
        }
        state.acknowledged = settled;
        Ok(settled > low)
    }

    /// Wakes the owner, and the thread if it waits for the last confirmation.
    pub(super) fn tell_confirmed(&self) {
        let state = self.lock();
        let done = state.closing && state.window.is_empty();
        let tells = state.lacks_room || self.notify.is_awaited();
        drop(state);
        if done {
            self.work.notify_one();
            self.answered.notify_all();
        }
        if tells {
            self.notify.notify();
        }
    }

    /// Records the failure of the connection. The first failure stays.
    pub(super) fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        if state.failure.is_some() {
            return;
        }
        state.failure = Some(failure);
        drop(state);
        self.failed.notify_one();
        self.answered.notify_all();
        self.notify.notify();
    }

    /// Waits until everything is acknowledged, the connection has failed, or `by`. Returns the
    /// reason if not everything is acknowledged.
    pub(super) fn drain(&self, by: Instant) -> Option<Failure> {
        self.lock().closing = true;
        self.work.notify_one();
        let left = by.saturating_duration_since(Instant::now());
        let waits = |state: &mut State| !state.window.is_empty() && state.failure.is_none();
        let waited = self.answered.wait_timeout_while(self.lock(), left, waits);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        // After the bye the receiver closes the connection, which is no failure.
        let late = || Failure::retry("close", "not everything was acknowledged in time");
        (!state.window.is_empty()).then(|| state.failure.clone().unwrap_or_else(late))
    }

    /// Returns the tickets that are not acknowledged, in order.
    pub(super) fn unconfirmed(&self) -> Vec<u64> {
        self.lock().window.tickets().collect()
    }
}
