//! The state of a connection that the owner of a writer and its thread share.

use std::collections::VecDeque;

use baler_common::number::to_u64;
use baler_common::transport::{Chunk, Failure, Outcome, WriterState};
use tokio::sync::Notify;

use crate::headers::ConnectionLimits;

#[derive(Debug)]
pub(super) struct ConnectionState {
    pub(super) writer: WriterState<Progress>,
    /// Wakes the thread that writes.
    pub(super) work: Notify,
    /// Wakes the thread after a failure, whatever it waits for.
    failed: Notify,
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The number of acknowledged chunks of this connection.
    acknowledged: u64,
    /// Whether the owner closes and offers no more chunks.
    pub(super) closing: bool,
    /// The limits that both ends agreed on, once they have.
    pub(super) limits: Option<ConnectionLimits>,
}

/// The next frames that the thread writes.
#[derive(Debug)]
pub(super) enum Work {
    Bye,
    Write,
}

impl ConnectionState {
    pub(super) fn new(endpoint: &str) -> Self {
        Self {
            writer: WriterState::new(endpoint, Default::default(), Progress::default()),
            work: Notify::new(),
            failed: Notify::new(),
        }
    }

    /// Clears the state for the next connection.
    pub(super) fn reset(&self) {
        self.writer.reset();
        self.writer.lock().medium = Progress::default();
    }

    /// Opens the writer with these limits.
    pub(super) fn open(&self, limits: ConnectionLimits) {
        self.writer.lock().medium.limits = Some(limits);
        self.writer.open();
    }

    /// Waits for the next frames to write. Moves chunks into `chunks`, which must be empty.
    pub(super) async fn work(&self, chunks: &mut VecDeque<Chunk>) -> Work {
        loop {
            {
                let mut state = self.writer.lock();
                if !state.queue.is_empty() {
                    std::mem::swap(chunks, &mut state.queue);
                    return Work::Write;
                }
                if state.medium.closing && state.window.is_empty() {
                    return Work::Bye;
                }
            }
            self.work.notified().await;
        }
    }

    /// Waits until the connection has failed.
    pub(super) async fn failed(&self) {
        while self.writer.lock().failure().is_none() {
            self.failed.notified().await;
        }
    }

    /// Reports the chunks that the receiver has settled: this number of the connection's chunks.
    /// Returns whether the number grew. The caller calls [`tell_confirmed`](Self::tell_confirmed)
    /// afterwards.
    ///
    /// # Errors
    ///
    /// The number is impossible. The error is the lowest and the highest possible number.
    pub(super) fn acknowledge(&self, settled: u64) -> Result<bool, (u64, u64)> {
        let mut state = self.writer.lock();
        let low = state.medium.acknowledged;
        let high = low + to_u64(state.window.len() - state.queue.len());
        if !(low..=high).contains(&settled) {
            return Err((low, high));
        }
        for _ in low..settled {
            state.answer_oldest(Outcome::Confirmed);
        }
        state.medium.acknowledged = settled;
        Ok(settled > low)
    }

    /// Wakes the owner, and the thread if it waits for the last confirmation.
    pub(super) fn tell_confirmed(&self) {
        let state = self.writer.lock();
        if state.medium.closing && state.window.is_empty() {
            self.work.notify_one();
        }
        self.writer.answered(state, false);
    }

    /// Records the failure of the connection. The first failure stays.
    pub(super) fn fail(&self, failure: Failure) {
        self.writer.fail(failure);
        self.failed.notify_one();
    }
}
