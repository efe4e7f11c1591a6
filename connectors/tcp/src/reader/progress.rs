//! Tracks the settled chunks of a connection.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::transport::{Epoch, ProducerId, Settled, SettledPrefix};
use tokio::sync::Notify;

use crate::security::Proof;

/// The connection of a sender: its proof, its claims and its settled chunks.
#[derive(Debug)]
pub(super) struct Connection {
    /// The endpoint of the sender.
    pub(super) endpoint: Box<str>,
    /// The proof that the sender has given.
    proof: Proof,
    /// The longest silence of a sender that is alive.
    silence: Duration,
    /// The time of the last read from the sender; none while this side does not read.
    heard: Mutex<Option<Instant>>,
    /// The lives of producers that the sender has claimed, oldest first.
    claimed: Mutex<VecDeque<(ProducerId, Epoch)>>,
    open: AtomicBool,
    progress: Mutex<Progress>,
    /// Notified when the watermark moved.
    pub(super) moved: Notify,
    /// The steps of memory that the unsettled chunks take.
    held: AtomicU32,
    /// Notified when a chunk gave its memory back.
    pub(super) released: Notify,
}

/// The settled chunks of a connection.
#[derive(Debug, Default)]
struct Progress {
    /// The chunks from the first unsettled one on, by their sequence.
    chunks: SettledPrefix<u64, ()>,
    /// The sequence after them.
    next: u64,
}

impl Connection {
    /// Creates a connection whose sender has just said hello.
    pub(super) fn new(endpoint: Box<str>, proof: Proof, silence: Duration) -> Self {
        Self {
            endpoint,
            proof,
            silence,
            heard: Mutex::new(Some(Instant::now())),
            claimed: Mutex::default(),
            open: AtomicBool::new(true),
            progress: Mutex::default(),
            moved: Notify::new(),
            held: AtomicU32::new(0),
            released: Notify::new(),
        }
    }

    /// Whether the sender is known to be alive.
    pub(super) fn is_alive(&self) -> bool {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        self.open.load(Ordering::Acquire) && heard.is_some_and(|at| at.elapsed() < self.silence)
    }

    /// Notes that bytes of the sender were read now.
    pub(super) fn note_read(&self) {
        self.set_heard(Some(Instant::now()));
    }

    /// Notes that this side stops reading: silence says nothing about the sender until the next
    /// [`note_read`](Self::note_read).
    pub(super) fn note_pause(&self) {
        self.set_heard(None);
    }

    fn set_heard(&self, heard: Option<Instant>) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = heard;
    }

    /// Whether both senders have given the same proof, other than none.
    pub(super) fn has_same_proof(&self, other: &Self) -> bool {
        self.proof != Proof::None && self.proof == other.proof
    }

    /// Returns the lives of producers that the sender has claimed.
    pub(super) fn claimed(&self) -> MutexGuard<'_, VecDeque<(ProducerId, Epoch)>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of settled chunks, from the first one on.
    pub(super) fn watermark(&self) -> u64 {
        self.lock().watermark()
    }

    /// Returns the steps of memory that the unsettled chunks take.
    pub(super) fn held(&self) -> u32 {
        self.held.load(Ordering::Acquire)
    }

    /// Adds the steps of memory that a chunk takes.
    pub(super) fn charge(&self, steps: u32) {
        self.held.fetch_add(steps, Ordering::AcqRel);
    }

    /// Subtracts the steps of memory that a chunk gave back.
    pub(super) fn release(&self, steps: u32) {
        self.held.fetch_sub(steps, Ordering::AcqRel);
        self.released.notify_one();
    }

    /// Marks the connection as ended: no chunk can be acknowledged any more.
    pub(super) fn set_gone(&self) {
        self.open.store(false, Ordering::Release);
    }

    /// Marks a chunk as settled. Returns [`Settled::Stale`] if the connection has ended.
    pub(super) fn settle(&self, sequence: u64) -> Settled {
        if !self.open.load(Ordering::Acquire) {
            return Settled::Stale;
        }
        if self.lock().settle(sequence) {
            self.moved.notify_one();
        }
        Settled::Done
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// All chunks before this one are settled.
    fn watermark(&self) -> u64 {
        self.chunks.first().copied().unwrap_or(self.next)
    }

    /// Marks a chunk as settled. Returns whether the watermark moved.
    fn settle(&mut self, sequence: u64) -> bool {
        // Bounded by the window, which the connection enforces.
        while self.next <= sequence {
            self.chunks.insert(self.next, ());
            self.next += 1;
        }
        self.chunks.settle(&sequence);
        let mut moved = false;
        while self.chunks.pop_settled().is_some() {
            moved = true;
        }
        moved
    }
}

#[cfg(test)]
mod tests;
