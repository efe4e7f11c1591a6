//! Appends rows within the budget of all queues, and hands blocks to the collector.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::container::LossReason;

use super::super::block::{Block, BlockPart, HEAD_WORDS, QueueRow};
use super::super::budget::{LEAST_WORDS, Overflow, WORD_BYTES};
use super::super::reentrance::Inside;
use super::super::set::QueueSet;
use super::super::sync::MutexGuard;
use super::state::QueueState;
use super::{Outcome, Pushed, ThreadQueue};
use crate::clock;

/// How long a blocked thread waits before it checks again whether room can still be made.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The number of evictions beyond the record's need before a thread gives up. Other threads may
/// take the room that it has made.
const EVICTIONS: usize = 8;

impl QueueSet {
    /// Appends a record to the shared queue. Takes a lock that all threads share.
    pub(crate) fn push_aside(&self, row: &QueueRow<'_>) -> Outcome {
        let _inside = Inside::enter();
        let state = self.aside.lock();
        if state.closed {
            Outcome::Closed
        } else {
            self.aside.push_alone(state, self, row).outcome
        }
    }

    /// Appends one of the collector's own records, even if there is no room and even if records are
    /// no longer accepted. They are few. They must not wait for room that only the collector makes.
    pub(crate) fn push_own(&self, row: &QueueRow<'_>) {
        let mut state = self.aside.lock();
        state.push(self.next_age(), Arc::new(Block::with(row)), 0);
        state.close_open(Block::seal);
    }
}

impl ThreadQueue {
    /// Appends a record for which the open block has no room, or applies the set's policy.
    ///
    /// Only the owner may call it, and only the owner has an open block.
    pub(in crate::queue) fn push(&self, set: &QueueSet, row: &QueueRow<'_>) -> Pushed {
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
        let words = row.words() + HEAD_WORDS;
        if words > set.budget().most_words() {
            return self.push_alone(state, set, row);
        }
        let most = set.budget().most_words_of(set.threads());
        let least = words.next_power_of_two().max(LEAST_WORDS);
        let words = state.next_words.min(most).max(least);
        let bytes = words * WORD_BYTES;
        let Some(mut state) = self.make_room(state, set, bytes) else {
            return Pushed::LOST;
        };
        let block = set.budget().block(words);
        // It always fits: the block has at least the record's size.
        block.append(row);
        state.next_words = words * 2;
        state.push(set.next_age(), Arc::clone(&block), bytes);
        drop(state);
        Pushed {
            outcome: Outcome::Appended,
            open: Some(block),
        }
    }

    /// Appends a row in a block of its own.
    fn push_alone<'a>(
        &'a self,
        state: MutexGuard<'a, QueueState>,
        set: &QueueSet,
        row: &QueueRow<'_>,
    ) -> Pushed {
        let words = row.words() + HEAD_WORDS;
        let bytes = words * WORD_BYTES;
        let Some(mut state) = self.make_room(state, set, bytes) else {
            return Pushed::LOST;
        };
        state.push(set.next_age(), Arc::new(Block::with(row)), bytes);
        state.close_open(Block::seal);
        drop(state);
        set.count_unread(bytes);
        Pushed::without_block(Outcome::Appended)
    }

    /// Charges bytes to the budget as the set's policy demands. Counts the record if the policy
    /// drops it.
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
        let most_evictions = bytes.div_ceil(LEAST_WORDS * WORD_BYTES);
        let most_evictions = most_evictions + EVICTIONS;
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
                    evictions += 1;
                    if let Some(queued) = state.evict() {
                        set.release(queued.block, queued.charged);
                        continue;
                    }
                    state.waiting += 1;
                    drop(state);
                    let evicted = set.evict_oldest();
                    state = self.lock();
                    if state.closed {
                        return None;
                    }
                    state.waiting -= 1;
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
                    state.waiting += 1;
                    drop(state);
                    set.wake_collector();
                    budget.wait(bytes, left.min(LOOK_AGAIN), || set.is_stopping());
                    state = self.lock();
                    if state.closed {
                        return None;
                    }
                    state.waiting -= 1;
                }
            }
        }
        // The room may be in blocks that other threads have not filled. The collector is not woken
        // for them.
        if !std::mem::replace(&mut state.woke_collector, true) {
            set.wake_collector();
        }
        state.refuse(overflow.loss());
        None
    }

    /// Returns the next part that the collector may read, up to a mark that the first call of a
    /// visit sets. Gives back blocks that were read to their end.
    ///
    /// Returns `None` if everything up to the mark was read before.
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
                let rows = end.rows - front.read.rows;
                let from = std::mem::replace(&mut front.read, end);
                let part = BlockPart {
                    block: Arc::clone(&front.block),
                    from: from.words,
                    until: end.words,
                };
                state.taken = taken + rows;
                state.is_claimed = true;
                return Some(part);
            }
            if is_open && is_owned {
                // The block is empty for now. It cannot be taken from its owner, who may append at
                // any time. If room is needed, its bytes are released until the owner has filled
                // it.
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
                set.release(queued.block, queued.charged);
            }
        }
    }
}

/// Returns how long the thread may still wait. The first call starts the time.
fn time_left(overflow: Overflow, deadline: &mut Option<Instant>) -> Duration {
    let Overflow::BlockTimeout(timeout) = overflow else {
        return Duration::MAX;
    };
    match deadline {
        Some(deadline) => clock::time_left(*deadline),
        None => {
            // A deadline beyond the range of an instant is as good as none.
            *deadline = clock::monotonic().checked_add(timeout);
            timeout
        }
    }
}
