//! The state of a thread's queue, under its lock.

use std::collections::VecDeque;
use std::sync::Arc;

use baler_common::container::{LossReason, Losses};

use super::super::block::{Block, Extent};
use super::super::budget::LEAST_WORDS;

/// The blocks of a thread's queue, and the account of its records.
#[derive(Debug)]
pub(super) struct QueueState {
    /// Oldest first.
    pub(super) blocks: VecDeque<QueuedBlock>,
    /// Whether the owner still appends to the last block.
    pub(super) is_open: bool,
    /// Whether the collector has begun to read the first block. No other thread may take it then.
    pub(super) is_claimed: bool,
    /// Whether a thread appends to the queue.
    pub(super) is_owned: bool,
    /// The size of the next block.
    pub(super) next_words: usize,
    /// Records in blocks that are not open any more, since the beginning.
    pub(super) appended: u64,
    /// Records that were read or evicted.
    pub(super) taken: u64,
    /// Records that were emitted and refused.
    pub(super) refused: u64,
    pub(super) lost: Losses,
    /// Records whose threads have released the lock to make room.
    pub(super) waiting: u64,
    /// Whether the collector was woken for lack of room; reset when there is room again.
    pub(super) woke_collector: bool,
    /// The queue accepts and counts no more records.
    pub(super) closed: bool,
}

/// A block of a queue.
#[derive(Debug)]
pub(super) struct QueuedBlock {
    /// A lower number is older.
    pub(super) age: u64,
    pub(super) block: Arc<Block>,
    /// The fill position, unless the block is open.
    pub(super) end: Extent,
    /// The collector's read position.
    pub(super) read: Extent,
    /// The bytes that are charged for it.
    pub(super) charged: usize,
}

impl Default for QueueState {
    fn default() -> Self {
        Self {
            blocks: VecDeque::new(),
            is_open: false,
            is_claimed: false,
            is_owned: true,
            next_words: LEAST_WORDS,
            appended: 0,
            taken: 0,
            refused: 0,
            lost: Losses::default(),
            waiting: 0,
            woke_collector: false,
            closed: false,
        }
    }
}

impl QueueState {
    pub(super) fn open_block(&self) -> Option<&Arc<Block>> {
        let last = self.blocks.back().filter(|_| self.is_open);
        last.map(|queued| &queued.block)
    }

    /// Adds an open block of this age, for which `charged` bytes were charged.
    pub(super) fn push(&mut self, age: u64, block: Arc<Block>, charged: usize) {
        self.is_open = true;
        self.blocks.push_back(QueuedBlock {
            age,
            block,
            end: Extent::NONE,
            read: Extent::NONE,
            charged,
        });
    }

    /// Closes the open block, if there is one: its extent does not change any more.
    pub(super) fn close_open(&mut self, seal: impl FnOnce(&Block) -> Extent) {
        let Some(end) = self.open_block().map(|block| seal(block)) else {
            return;
        };
        self.is_open = false;
        self.appended += end.rows;
        if let Some(queued) = self.blocks.back_mut() {
            queued.end = end;
        }
    }

    /// Closes the queue for its owner, unless it is closed.
    pub(super) fn close(&mut self) {
        if self.closed {
            return;
        }
        self.closed = true;
        let waiting = std::mem::take(&mut self.waiting);
        self.refused += waiting;
        self.lost.add(LossReason::Shutdown, waiting);
        self.close_open(Block::seal_as_non_owner);
    }

    pub(super) fn appended(&self) -> u64 {
        let open = self.open_block().map_or(0, |block| block.committed().rows);
        self.appended + open
    }

    pub(super) fn refuse(&mut self, reason: LossReason) {
        self.refused += 1;
        self.lost.add(reason, 1);
    }

    /// The position of the oldest block that is neither being read nor filled.
    pub(super) fn evictable(&self) -> Option<usize> {
        let first = usize::from(self.is_claimed);
        let open = usize::from(self.is_open);
        (first + open < self.blocks.len()).then_some(first)
    }

    /// Evicts the oldest block that may be evicted, and counts its records as lost.
    pub(super) fn evict(&mut self) -> Option<QueuedBlock> {
        let queued = self.blocks.remove(self.evictable()?)?;
        self.taken += queued.end.rows;
        self.lost.add(LossReason::QueueFullOldest, queued.end.rows);
        Some(queued)
    }
}

impl QueuedBlock {
    pub(super) fn end(&self, is_open: bool) -> Extent {
        if is_open {
            self.block.committed()
        } else {
            self.end
        }
    }
}
