//! The queue of one thread. `set` has one more, for records that no thread's queue can take.

mod append;
mod state;

use std::sync::{Arc, PoisonError};

use baler_common::container::{LossReason, Losses};

use super::block::Block;
use super::budget::LEAST_WORDS;
use super::sync::{Mutex, MutexGuard};
use state::QueueState;

/// Rows in order, in blocks: appended by one thread, read by the collector.
///
/// The owner appends to the open block without the lock, and takes the lock once a block. The
/// collector takes the lock once a visit, and reads without it.
#[derive(Debug, Default)]
pub(crate) struct ThreadQueue {
    state: Mutex<QueueState>,
}

/// Counts of the queues.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueCounts {
    /// Records that were emitted, accepted or not.
    pub(crate) emitted: u64,
    /// Records that are still queued.
    pub(crate) queued: u64,
    /// Records lost before they reached the collector.
    pub(crate) lost: Losses,
}

/// The outcome of emitting a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Appended,
    /// The queue was closed before. This queue does not count the record.
    Closed,
    /// The record is lost, and counted.
    Lost,
}

/// The outcome of a row for which the owner has taken the lock.
pub(super) struct Pushed {
    pub(super) outcome: Outcome,
    /// The block to which the owner may append from now on.
    pub(super) open: Option<Arc<Block>>,
}

impl Pushed {
    const CLOSED: Self = Self::without_block(Outcome::Closed);
    const LOST: Self = Self::without_block(Outcome::Lost);

    const fn without_block(outcome: Outcome) -> Self {
        Self {
            outcome,
            open: None,
        }
    }
}

impl ThreadQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a record that was refused.
    pub(super) fn refuse(&self, reason: LossReason) -> Outcome {
        let mut state = self.lock();
        if state.closed {
            return Outcome::Closed;
        }
        state.refuse(reason);
        Outcome::Lost
    }

    /// Sets whether a thread owns the queue. Its first block is the smallest.
    pub(super) fn set_owned(&self, owned: bool) {
        let mut state = self.lock();
        state.is_owned = owned;
        state.next_words = LEAST_WORDS;
    }

    /// Returns the age of the oldest block that may be evicted. A lower number is older.
    pub(super) fn oldest(&self) -> Option<u64> {
        let state = self.lock();
        let at = state.evictable()?;
        state.blocks.get(at).map(|queued| queued.age)
    }

    /// Evicts the oldest block that is neither being read nor filled, and counts its records as
    /// lost. Returns it with the bytes that were charged for it.
    pub(super) fn evict(&self) -> Option<(Arc<Block>, usize)> {
        let queued = self.lock().evict()?;
        Some((queued.block, queued.charged))
    }

    /// Returns how many records were appended so far.
    pub(crate) fn appended(&self) -> u64 {
        self.lock().appended()
    }

    /// Returns how many records were read or evicted so far.
    pub(crate) fn taken(&self) -> u64 {
        self.lock().taken
    }

    /// Whether it has neither an owner nor a record.
    pub(super) fn is_abandoned(&self) -> bool {
        let state = self.lock();
        !state.is_owned && state.blocks.is_empty()
    }

    /// Accepts no more records; records that wait for room count as lost.
    ///
    /// Appended records can still be read.
    pub(super) fn close(&self) {
        self.lock().close();
    }

    /// Adds the counts of this queue to `counts`.
    pub(super) fn count(&self, counts: &mut QueueCounts) {
        let state = self.lock();
        let appended = state.appended();
        counts.emitted += appended + state.refused + state.waiting;
        counts.queued += appended - state.taken;
        for (code, lost) in state.lost.iter() {
            counts.lost.add_code(code, lost);
        }
    }
}
