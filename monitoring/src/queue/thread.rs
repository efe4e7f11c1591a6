//! The queue of one thread, and the shared one for what no thread's queue can take.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::container::{LossReason, Losses};
use baler_common::record::Schema;

use super::block::Block;
use super::overflow::Overflow;
use super::set::{QueueCounts, QueueSet};
use crate::clock::monotonic;

/// How long a blocked thread waits before it looks again whether anyone will make room.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How often a thread evicts a block more than its record needs, because it lost the room to another
/// thread, before it gives up.
const EVICTIONS: usize = 8;

/// Rows in order, in blocks: appended by one thread, claimed by the collector.
///
/// The lock is contended only while the collector claims a block or another thread evicts one.
#[derive(Debug, Default)]
pub(crate) struct ThreadQueue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Full blocks with their ages, oldest first.
    full: VecDeque<(u64, Block)>,
    /// The block that is appended to.
    open: Option<(u64, Block)>,
    emitted: u64,
    /// Records that were appended, and of these the ones that were claimed or evicted.
    appended: u64,
    taken: u64,
    lost: Losses,
    /// Records whose threads have let go of the lock to make room.
    waiting: u64,
    /// Whether the collector was told that there is no room; until there is again.
    told: bool,
    /// Nothing is taken or counted any more.
    closed: bool,
}

impl ThreadQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a record, or does what the set's policy says; whether it was appended.
    pub(super) fn push(
        &self,
        set: &QueueSet,
        schema: &Arc<Schema>,
        timestamp: i64,
        fields: &[u8],
    ) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        state.emitted = state.emitted.saturating_add(1);
        if let Some((_, block)) = &mut state.open
            && block.append(schema, timestamp, fields)
        {
            state.appended = state.appended.saturating_add(1);
            return true;
        }
        self.push_to_new_block(state, set, schema, timestamp, fields)
    }

    #[cold]
    fn push_to_new_block<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        set: &QueueSet,
        schema: &Arc<Schema>,
        timestamp: i64,
        fields: &[u8],
    ) -> bool {
        let needed = Block::needed(fields.len());
        if !set.budget().can_hold(needed) {
            state.lost.add(LossReason::TooLarge, 1);
            return false;
        }
        if let Some(full) = state.open.take() {
            state.full.push_back(full);
            set.wake_collector();
            if set.is_forked() {
                // The child of a fork has no collector.
                state.closed = true;
                return false;
            }
        }
        let overflow = set.overflow();
        let mut deadline = None;
        let mut evictions = 0_usize;
        let most_evictions = EVICTIONS.saturating_add(set.budget().blocks_for(needed));
        loop {
            // While this thread waited, another one may have brought the queue that they share a
            // block.
            if let Some((_, block)) = &mut state.open
                && block.append(schema, timestamp, fields)
            {
                state.appended = state.appended.saturating_add(1);
                return true;
            }
            if let Some(mut block) = set.budget().acquire(needed) {
                state.told = false;
                // It always fits: the block was asked to be large enough.
                if block.append(schema, timestamp, fields) {
                    state.appended = state.appended.saturating_add(1);
                }
                if let Some(full) = state.open.replace((set.next_age(), block)) {
                    state.full.push_back(full);
                }
                return true;
            }
            match overflow {
                Overflow::DropNewest => {
                    // The room may be in blocks that other threads have not filled: of these the
                    // collector would not hear.
                    if !std::mem::replace(&mut state.told, true) {
                        set.wake_collector();
                    }
                    break;
                }
                Overflow::DropOldest => {
                    if evictions >= most_evictions {
                        break;
                    }
                    evictions = evictions.saturating_add(1);
                    if let Some(block) = state.evict() {
                        set.budget().release(block);
                        continue;
                    }
                    state.waiting = state.waiting.saturating_add(1);
                    drop(state);
                    let evicted = set.evict_oldest();
                    state = self.lock();
                    if state.closed {
                        return false;
                    }
                    state.waiting = state.waiting.saturating_sub(1);
                    if !evicted {
                        break;
                    }
                }
                Overflow::Block | Overflow::BlockTimeout(_) => {
                    if set.is_stopping() || set.is_forked() {
                        state.lost.add(LossReason::Shutdown, 1);
                        return false;
                    }
                    let left = time_left(overflow, &mut deadline);
                    if left.is_zero() {
                        break;
                    }
                    state.waiting = state.waiting.saturating_add(1);
                    drop(state);
                    set.wake_collector();
                    set.budget().wait(needed, left.min(LOOK_AGAIN));
                    state = self.lock();
                    if state.closed {
                        return false;
                    }
                    state.waiting = state.waiting.saturating_sub(1);
                }
            }
        }
        state.lost.add(overflow.loss(), 1);
        false
    }

    /// Counts a record that was not taken; `false` for the caller to return.
    pub(super) fn refuse(&self, reason: LossReason) -> bool {
        let mut state = self.lock();
        if !state.closed {
            state.emitted = state.emitted.saturating_add(1);
            state.lost.add(reason, 1);
        }
        false
    }

    /// Takes the oldest block, the open one if there is no other.
    pub(crate) fn claim(&self) -> Option<Block> {
        let mut state = self.lock();
        let (_, block) = state.full.pop_front().or_else(|| state.open.take())?;
        state.taken = state.taken.saturating_add(block.records());
        Some(block)
    }

    /// The age of the oldest block; less is older.
    pub(super) fn oldest(&self) -> Option<u64> {
        let state = self.lock();
        let oldest = state.full.front().or(state.open.as_ref());
        oldest.map(|(age, _)| *age)
    }

    /// Takes the oldest block and counts its records as lost.
    pub(super) fn evict(&self) -> Option<Block> {
        self.lock().evict()
    }

    /// How many records were appended so far.
    pub(crate) fn appended(&self) -> u64 {
        self.lock().appended
    }

    /// How many of them were claimed or evicted.
    pub(crate) fn taken(&self) -> u64 {
        self.lock().taken
    }

    /// Takes nothing any more; records that wait for room count as lost.
    ///
    /// What was appended can still be claimed.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.waiting);
        if !state.closed {
            state.lost.add(LossReason::Shutdown, waiting);
        }
        state.closed = true;
    }

    /// Adds what it has counted.
    pub(super) fn count(&self, counts: &mut QueueCounts) {
        let state = self.lock();
        counts.emitted = counts.emitted.saturating_add(state.emitted);
        let queued = state.appended.saturating_sub(state.taken);
        counts.queued = counts.queued.saturating_add(queued);
        for (code, lost) in state.lost.iter() {
            counts.lost.add_code(code, lost);
        }
    }
}

impl State {
    /// Takes the oldest block, the open one if there is no other, and counts its records as lost.
    fn evict(&mut self) -> Option<Block> {
        let (_, block) = self.full.pop_front().or_else(|| self.open.take())?;
        self.taken = self.taken.saturating_add(block.records());
        self.lost.add(LossReason::QueueFullOldest, block.records());
        Some(block)
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
