//! The bytes that all queues of a controller share.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use baler_common::container::LossReason;

use super::block::Block;
use super::sync::{AtomicBool, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering};

/// A word of a block.
pub(super) const WORD_BYTES: usize = 8;

/// The first block of a thread. Ten thousand threads that emit little have only this one each.
#[cfg(not(all(test, baler_loom)))]
pub(super) const LEAST_WORDS: usize = (1 << 10) / WORD_BYTES;

/// Loom checks every word by itself, so models need small blocks.
#[cfg(all(test, baler_loom))]
pub(super) const LEAST_WORDS: usize = 16;

/// The largest block, unless the budget is small or there are many threads. It is so large that the
/// cost of changing blocks does not matter. A change costs about three microseconds if threads
/// pause between calls, because the collector has touched all shared data meanwhile. With a quarter
/// of these words it took an eighth of the calls' time.
const MOST_WORDS: usize = LEAST_WORDS << (SIZES - 1);

/// The largest block in a budget of which [`MOST_WORDS`] would be a large part.
const FEWER_WORDS: usize = MOST_WORDS / 4;

/// What happens to a record when there is no room for it.
///
/// Kieker calls it `RecordQueueInsertBehavior`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The thread waits until there is room. It never waits for a collector that is gone or
    /// shutting down: the record is then dropped.
    Block,
    /// The thread waits for at most this time, then the record is dropped.
    BlockTimeout(Duration),
    /// The new record is dropped. This is the default: monitoring must not stall the monitored
    /// program, and no other policy costs the thread less.
    #[default]
    DropNewest,
    /// The oldest block of records is dropped, the thread's own if it has one. Blocks that threads
    /// are still filling are not dropped. If there is no other block, the new record is dropped.
    DropOldest,
}

impl Overflow {
    /// Returns the reason of a loss when this policy finds no room.
    pub(crate) const fn loss(self) -> LossReason {
        match self {
            // Without a time limit, a thread stops waiting only because no more room will be made.
            Self::Block => LossReason::Shutdown,
            Self::BlockTimeout(_) => LossReason::BlockTimeout,
            Self::DropNewest => LossReason::QueueFullNewest,
            Self::DropOldest => LossReason::QueueFullOldest,
        }
    }
}

/// Hands out blocks as long as their bytes stay within the budget, and takes them back.
///
/// Its lock is taken once a block, never once a record.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    most_words: usize,
    charged: AtomicUsize,
    free: Mutex<FreeBlocks>,
    room: Condvar,
    /// Whether a thread has found no room since the collector last checked.
    pressed: AtomicBool,
}

/// The number of block sizes; each is twice the one before.
const SIZES: usize = 8;

/// Cleared blocks by their sizes. Together with the blocks in use they do not exceed the limit.
#[derive(Debug, Default)]
struct FreeBlocks {
    blocks: [Vec<Arc<Block>>; SIZES],
    bytes: usize,
    /// The number of threads that wait for room.
    waiting: usize,
    /// Whether there is room of which no waiting thread was notified.
    has_unnoticed_room: bool,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        let [quarter, small] = [4, 64].map(|parts| power_of_two_below(limit / parts / WORD_BYTES));
        let most_words = small.clamp(FEWER_WORDS, MOST_WORDS);
        Self {
            limit,
            most_words: quarter.clamp(LEAST_WORDS, most_words),
            charged: AtomicUsize::new(0),
            free: Mutex::new(FreeBlocks::default()),
            room: Condvar::new(),
            pressed: AtomicBool::new(false),
        }
    }

    /// The bytes in use.
    pub(super) fn charged(&self) -> usize {
        self.charged.load(Ordering::Relaxed)
    }

    /// Whether this number of bytes is within the limit at all.
    pub(super) fn can_hold(&self, bytes: usize) -> bool {
        bytes <= self.limit
    }

    /// The words of the largest block.
    pub(super) fn most_words(&self) -> usize {
        self.most_words
    }

    /// The words of the largest block of one of `threads` threads. The open blocks of all threads
    /// together must leave most of the budget to full blocks.
    pub(super) fn most_words_of(&self, threads: usize) -> usize {
        let share = self.limit / 4 / WORD_BYTES / threads.max(1);
        power_of_two_below(share).clamp(LEAST_WORDS, self.most_words)
    }

    /// Returns how many bytes may be unread before the collector is woken early.
    pub(super) fn wake_bytes(&self) -> usize {
        self.limit / 4
    }

    /// Whether half of the budget is used. A quarter may be blocks that are being read and filled.
    pub(super) fn is_backlog(&self) -> bool {
        self.charged() >= self.limit / 2
    }

    /// Charges this number of bytes, if the budget has them; returns whether it did.
    pub(super) fn charge(&self, bytes: usize) -> bool {
        let charge = |charged: usize| charged.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.charged
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, charge)
            .is_ok()
    }

    /// Returns a block of `words` words, a power of two. The caller has charged them.
    pub(super) fn block(&self, words: usize) -> Arc<Block> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = free.of_size(words).and_then(Vec::pop) {
            free.bytes -= block.bytes();
            return block;
        }
        // Cached blocks make way for a block of another size.
        let keep = self.limit - self.charged();
        free.shrink(keep);
        drop(free);
        Arc::new(Block::new(words))
    }

    /// Takes back a block that no other thread uses, and the bytes that were charged for it.
    pub(super) fn release_block(&self, block: Arc<Block>, charged: usize) {
        block.clear();
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let others = self.charged() - charged;
        let bytes = free.bytes + block.bytes();
        if bytes + others <= self.limit {
            if let Some(blocks) = free.of_size(block.len()) {
                blocks.push(block);
                free.bytes = bytes;
            }
        }
        drop(free);
        self.release(charged);
    }

    /// Gives bytes back, and wakes waiting threads once enough bytes are free.
    ///
    /// A thread that is woken for each block fills it and waits again. That costs as much as the
    /// block's records. So it sleeps until a quarter is free, or until
    /// [`Self::notify_waiters`].
    pub(super) fn release(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        // Under the lock, so that no thread misses it between its check and its wait.
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let charged = self.charged.fetch_sub(bytes, Ordering::Relaxed);
        if free.waiting == 0 {
            return;
        }
        if charged - bytes > self.limit / 4 * 3 {
            free.has_unnoticed_room = true;
            return;
        }
        self.wake(free);
    }

    /// Wakes waiting threads that were not woken although there is room.
    pub(super) fn notify_waiters(&self) {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.has_unnoticed_room {
            self.wake(free);
        }
    }

    fn wake(&self, mut free: MutexGuard<'_, FreeBlocks>) {
        let has_unnoticed_room = std::mem::take(&mut free.has_unnoticed_room);
        drop(free);
        // Notifying is always a system call, whether a thread waits or not.
        if has_unnoticed_room {
            self.room.notify_all();
        } else {
            self.room.notify_one();
        }
    }

    /// Records that a thread found no room.
    pub(super) fn press(&self) {
        self.pressed.store(true, Ordering::Relaxed);
    }

    /// Whether a thread has found no room since the last call.
    pub(super) fn take_pressed(&self) -> bool {
        self.pressed.swap(false, Ordering::Relaxed)
    }

    /// Waits until bytes were given back, all threads were woken, or `timeout` is over. Does not
    /// wait if `gives_up` returns `true`.
    pub(super) fn wait(&self, bytes: usize, timeout: Duration, gives_up: impl Fn() -> bool) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        // Both values change before the waker takes the lock, so no wake-up is missed.
        if self.charged() + bytes > self.limit && !gives_up() {
            free.waiting += 1;
            let (mut free, _) = self
                .room
                .wait_timeout(free, timeout)
                .unwrap_or_else(PoisonError::into_inner);
            free.waiting -= 1;
        }
    }

    /// Wakes all waiting threads, so that they check whether to go on.
    pub(super) fn wake_waiters(&self) {
        drop(self.free.lock().unwrap_or_else(PoisonError::into_inner));
        self.room.notify_all();
    }
}

impl FreeBlocks {
    /// The cached blocks of `words` words; `None` if blocks of this size are not reused.
    fn of_size(&mut self, words: usize) -> Option<&mut Vec<Arc<Block>>> {
        if !words.is_power_of_two() {
            return None;
        }
        let size = (words / LEAST_WORDS).checked_ilog2()?;
        self.blocks.get_mut(usize::try_from(size).ok()?)
    }

    /// Frees cached blocks until at most `keep` bytes are left.
    fn shrink(&mut self, keep: usize) {
        for blocks in &mut self.blocks {
            while self.bytes > keep {
                let Some(block) = blocks.pop() else { break };
                self.bytes -= block.bytes();
            }
        }
    }
}

/// Returns the largest power of two that is not above this number; 0 for 0.
fn power_of_two_below(number: usize) -> usize {
    number.checked_ilog2().map_or(0, |bits| 1 << bits)
}
