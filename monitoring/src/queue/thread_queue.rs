//! The queue of one thread, and the shared one for what no thread's queue can take.

mod state;

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use baler_common::container::LossReason;

use super::block::{Block, HEAD_WORDS, QueueRow};
use super::block_reader::BlockPart;
use super::budget::{LEAST_WORDS, Overflow, WORD_BYTES};
use super::set::{QueueCounts, QueueSet};
use super::sync::{Mutex, MutexGuard};
use crate::clock::monotonic;
use state::{QueueState, QueuedBlock};

/// How long a blocked thread waits before it looks again whether anyone will make room.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How often a thread evicts a block more than its record needs, because it lost the room to another
/// thread, before it gives up.
const EVICTIONS: usize = 8;

/// Rows in order, in blocks: appended by one thread, read by the collector.
///
/// The owner appends to the open block without this lock, and takes it once a block.
/// The collector takes it once a visit, and reads without it.
#[derive(Debug, Default)]
pub(crate) struct ThreadQueue {
    state: Mutex<QueueState>,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Appended,
    /// The queue was closed before: the record is in no account.
    Closed,
    /// It is lost, and counted.
    Lost,
}

/// What became of a row for which the owner has taken the lock.
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

    /// Appends a record for which the open block has no room, or does what the set's policy says.
    ///
    /// Only the owner may call it, and nobody but it has an open block.
    pub(super) fn push(&self, set: &QueueSet, row: &QueueRow<'_>) -> Pushed {
        let mut state = self.lock();
        if state.closed {
            return Pushed::CLOSED;
        }
        if let Some(block) = state.open_block() {
            if block.append(row) {
                let open = Some(Arc::clone(block));
                drop(state);
                return Pushed {
                    outcome: Outcome::Appended,
                    open,
                };
            }
            let bytes = block.bytes();
            state.close_open(Block::seal);
            set.count_unread(bytes);
        }
        let words = row.words().saturating_add(HEAD_WORDS);
        if words > set.budget().most_words() {
            return self.push_alone(state, set, row);
        }
        let most = set.budget().most_words_of(set.threads());
        let least = words.next_power_of_two().max(LEAST_WORDS);
        let words = state.next_words.min(most).max(least);
        let bytes = words.saturating_mul(WORD_BYTES);
        let Some(mut state) = self.make_room(state, set, bytes) else {
            return Pushed::LOST;
        };
        let block = set.budget().block(words);
        // It always fits: the block was asked to be large enough.
        block.append(row);
        state.next_words = words.saturating_mul(2);
        state.push(set, Arc::clone(&block), bytes);
        drop(state);
        Pushed {
            outcome: Outcome::Appended,
            open: Some(block),
        }
    }

    /// Appends a record by itself: for several threads that share this queue.
    pub(super) fn push_shared(&self, set: &QueueSet, row: &QueueRow<'_>) -> Outcome {
        let state = self.lock();
        if state.closed {
            Outcome::Closed
        } else {
            self.push_alone(state, set, row).outcome
        }
    }

    /// Appends a record of the collector's own, whether there is room or not and whether records are
    /// still taken or not.
    pub(super) fn push_own(&self, set: &QueueSet, row: &QueueRow<'_>) {
        let mut state = self.lock();
        state.push(set, Arc::new(Block::with(row)), 0);
        state.close_open(Block::seal);
    }

    /// Appends a row in a block of its own.
    fn push_alone<'a>(
        &'a self,
        state: MutexGuard<'a, QueueState>,
        set: &QueueSet,
        row: &QueueRow<'_>,
    ) -> Pushed {
        let words = row.words().saturating_add(HEAD_WORDS);
        let bytes = words.saturating_mul(WORD_BYTES);
        let Some(mut state) = self.make_room(state, set, bytes) else {
            return Pushed::LOST;
        };
        state.push(set, Arc::new(Block::with(row)), bytes);
        state.close_open(Block::seal);
        drop(state);
        set.count_unread(bytes);
        Pushed::without_block(Outcome::Appended)
    }

    /// Charges bytes to the budget as the set's policy says; counts the record if the policy drops it.
    fn make_room<'a>(
        &'a self,
        mut state: MutexGuard<'a, QueueState>,
        set: &QueueSet,
        bytes: usize,
    ) -> Option<MutexGuard<'a, QueueState>> {
        let budget = set.budget();
        if !budget.can_hold(bytes) {
            state.refuse(LossReason::TooLarge);
            return None;
        }
        let overflow = set.overflow();
        let mut deadline = None;
        let mut evictions = 0_usize;
        let most_evictions = bytes.div_ceil(LEAST_WORDS.saturating_mul(WORD_BYTES));
        let most_evictions = most_evictions.saturating_add(EVICTIONS);
        loop {
            if budget.charge(bytes) {
                state.woke_collector = false;
                return Some(state);
            }
            budget.press();
            match overflow {
                Overflow::DropNewest => break,
                Overflow::DropOldest => {
                    if evictions >= most_evictions {
                        break;
                    }
                    evictions = evictions.saturating_add(1);
                    if let Some(queued) = state.evict() {
                        set.release(queued);
                        continue;
                    }
                    state.waiting = state.waiting.saturating_add(1);
                    drop(state);
                    let evicted = set.evict_oldest();
                    state = self.lock();
                    if state.closed {
                        return None;
                    }
                    state.waiting = state.waiting.saturating_sub(1);
                    if !evicted {
                        break;
                    }
                }
                Overflow::Block | Overflow::BlockTimeout(_) => {
                    if set.is_stopping() {
                        state.refuse(LossReason::Shutdown);
                        return None;
                    }
                    let left = time_left(overflow, &mut deadline);
                    if left.is_zero() {
                        break;
                    }
                    state.waiting = state.waiting.saturating_add(1);
                    drop(state);
                    set.wake_collector();
                    budget.wait(bytes, left.min(LOOK_AGAIN), || set.is_stopping());
                    state = self.lock();
                    if state.closed {
                        return None;
                    }
                    state.waiting = state.waiting.saturating_sub(1);
                }
            }
        }
        // The room may be in blocks that other threads have not filled: of these the collector
        // would not hear.
        if !std::mem::replace(&mut state.woke_collector, true) {
            set.wake_collector();
        }
        state.refuse(overflow.loss());
        None
    }

    /// Counts a record that was not taken.
    pub(super) fn refuse(&self, reason: LossReason) -> Outcome {
        let mut state = self.lock();
        if state.closed {
            return Outcome::Closed;
        }
        state.refuse(reason);
        Outcome::Lost
    }

    /// A thread begins or ends to append.
    pub(super) fn set_owned(&self, owned: bool) {
        let mut state = self.lock();
        state.is_owned = owned;
        state.next_words = LEAST_WORDS;
    }

    /// What the collector may read next, up to a mark that the first call of a visit sets; gives
    /// back what was read to its end.
    ///
    /// `None` when everything up to the mark was read before.
    pub(crate) fn claim(
        &self,
        set: &QueueSet,
        mark: &mut Option<u64>,
        is_pressed: bool,
    ) -> Option<BlockPart> {
        let mut state = self.lock();
        let mark = *mark.get_or_insert_with(|| state.appended());
        loop {
            let is_open = state.is_open && state.blocks.len() == 1;
            let (is_owned, taken) = (state.is_owned, state.taken);
            let front = state.blocks.front_mut()?;
            let end = front.end(is_open);
            if end.words > front.read.words {
                if taken >= mark {
                    return None;
                }
                let rows = end.rows.saturating_sub(front.read.rows);
                let from = std::mem::replace(&mut front.read, end);
                let part = BlockPart {
                    block: Arc::clone(&front.block),
                    from: from.words,
                    until: end.words,
                };
                state.taken = taken.saturating_add(rows);
                state.is_claimed = true;
                return Some(part);
            }
            if is_open && is_owned {
                // It is empty for now and cannot be taken from its owner, who may append at any
                // time. Where the room is needed, it does not count until the owner has filled it.
                if is_pressed {
                    let charged = std::mem::take(&mut front.charged);
                    drop(state);
                    set.budget().release(charged);
                }
                return None;
            }
            state.is_claimed = false;
            if is_open {
                state.close_open(Block::seal);
            }
            if let Some(queued) = state.blocks.pop_front() {
                set.release(queued);
            }
        }
    }

    /// The age of the oldest block that may be evicted; less is older.
    pub(super) fn oldest(&self) -> Option<u64> {
        let state = self.lock();
        let at = state.evictable()?;
        state.blocks.get(at).map(|queued| queued.age)
    }

    /// Takes the oldest block that nobody reads or fills and counts its records as lost; whether
    /// there was one.
    pub(super) fn evict(&self, set: &QueueSet) -> bool {
        let evicted = self.lock().evict();
        evicted.map(|queued| set.release(queued)).is_some()
    }

    /// How many records were appended so far.
    pub(crate) fn appended(&self) -> u64 {
        self.lock().appended()
    }

    /// How many of them were read or evicted.
    pub(crate) fn taken(&self) -> u64 {
        self.lock().taken
    }

    /// Whether it has neither an owner nor a record.
    pub(super) fn is_abandoned(&self) -> bool {
        let state = self.lock();
        !state.is_owned && state.blocks.is_empty()
    }

    /// Takes nothing any more; records that wait for room count as lost.
    ///
    /// What was appended can still be read.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        state.refused = state.refused.saturating_add(waiting);
        state.lost.add(LossReason::Shutdown, waiting);
        state.close_open(Block::seal_from_afar);
    }

    /// Adds what it has counted.
    pub(super) fn count(&self, counts: &mut QueueCounts) {
        let state = self.lock();
        let appended = state.appended();
        let emitted = appended
            .saturating_add(state.refused)
            .saturating_add(state.waiting);
        counts.emitted = counts.emitted.saturating_add(emitted);
        let queued = appended.saturating_sub(state.taken);
        counts.queued = counts.queued.saturating_add(queued);
        for (code, lost) in state.lost.iter() {
            counts.lost.add_code(code, lost);
        }
    }
}

impl QueueSet {
    /// Gives back a block and the bytes that were charged for it.
    fn release(&self, queued: QueuedBlock) {
        // A thread whose queue was closed while it appended may not have noticed: no other thread
        // gets its block.
        if self.is_stopping() {
            self.budget().release(queued.charged);
        } else {
            self.budget().release_block(queued.block, queued.charged);
        }
    }
}

/// How long the thread may still wait; the first call starts the time.
fn time_left(overflow: Overflow, deadline: &mut Option<Instant>) -> Duration {
    let Overflow::BlockTimeout(timeout) = overflow else {
        return Duration::MAX;
    };
    let now = monotonic();
    match deadline {
        Some(deadline) => deadline.saturating_duration_since(now),
        None => {
            // A time beyond what an instant can hold is as good as for ever.
            *deadline = now.checked_add(timeout);
            timeout
        }
    }
}
