//! The bytes that all queues of a controller share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::block::Block;

/// How large a block is unless the budget is small: large enough that a wake-up per block is rare,
/// small enough that a thousand threads with one block each stay within the default budget.
const BLOCK_BYTES: usize = 16 << 10;

/// Hands out blocks as long as their bytes stay within the budget, and takes them back.
///
/// Its lock is taken once a block, never once a record.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    block_bytes: usize,
    charged: AtomicUsize,
    /// Cleared blocks of the usual size. Together with those handed out they never exceed the
    /// limit, because a new one is made only when there is none.
    free: Mutex<Vec<Block>>,
    room: Condvar,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            block_bytes: BLOCK_BYTES.min(limit / 4),
            charged: AtomicUsize::new(0),
            free: Mutex::new(Vec::new()),
            room: Condvar::new(),
        }
    }

    /// The bytes that are handed out.
    pub(super) fn charged(&self) -> usize {
        self.charged.load(Ordering::Relaxed)
    }

    /// Whether a row that needs so many bytes can ever have a block.
    pub(super) fn can_hold(&self, needed: usize) -> bool {
        needed <= self.limit
    }

    /// How many blocks of the usual size make room for a row that needs so many bytes.
    pub(super) fn blocks_for(&self, needed: usize) -> usize {
        needed.div_ceil(self.block_bytes.max(1))
    }

    /// A block for a row that needs so many bytes; one of its own if it is larger than usual.
    pub(super) fn acquire(&self, needed: usize) -> Option<Block> {
        let bytes = needed.max(self.block_bytes);
        let charge = |charged: usize| charged.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.charged
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, charge)
            .ok()?;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes == self.block_bytes {
            let block = free.pop();
            drop(free);
            return Some(block.unwrap_or_else(|| Block::new(bytes)));
        }
        // What is kept for later makes way for a block of an unusual size.
        let keep = self.limit.saturating_sub(self.charged()) / self.block_bytes.max(1);
        free.truncate(keep);
        drop(free);
        Some(Block::new(bytes))
    }

    /// Takes a block back and tells one who waits for room.
    pub(super) fn release(&self, mut block: Block) {
        let bytes = block.limit();
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes == self.block_bytes {
            block.clear();
            free.push(block);
        }
        self.charged.fetch_sub(bytes, Ordering::Relaxed);
        drop(free);
        self.room.notify_one();
    }

    /// Waits until a block was released, or all were woken, but not longer than this.
    pub(super) fn wait(&self, needed: usize, timeout: Duration) {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = needed.max(self.block_bytes);
        // Releases change the charge under the lock, so none is missed between look and wait.
        if self.charged().saturating_add(bytes) > self.limit {
            drop(
                self.room
                    .wait_timeout(free, timeout)
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
    }

    /// Wakes all who wait, so that they look whether to go on.
    pub(super) fn wake_waiters(&self) {
        drop(self.free.lock().unwrap_or_else(PoisonError::into_inner));
        self.room.notify_all();
    }
}
