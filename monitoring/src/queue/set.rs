//! All queues of one controller.

use std::fmt;
use std::sync::{Arc, PoisonError};

use baler_common::container::LossReason;
use baler_common::record::RecordBatch;
use baler_common::transport::Notify;

use super::barrier;
use super::block::Block;
use super::budget::{Budget, Overflow};
use super::handover::Handover;
use super::reentrance::{self, Inside};
use super::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};
use super::thread_queue::{Outcome, QueueCounts, ThreadQueue};
use crate::fork::Process;

/// The queues of all threads of one controller, and a shared queue for records that no thread's
/// queue can take.
pub(crate) struct QueueSet {
    key: u64,
    overflow: Overflow,
    budget: Budget,
    registry: Mutex<Registry>,
    /// Counts changes of the registry.
    changes: AtomicU64,
    /// Takes records that a thread emits after its thread-local storage is gone.
    pub(super) aside: Arc<ThreadQueue>,
    /// Holds a whole batch for the collector.
    handover: Handover,
    ages: AtomicU64,
    /// The number of threads with a queue.
    threads: AtomicUsize,
    /// Bytes passed to the collector since it began its last round.
    unread: AtomicUsize,
    stopping: AtomicBool,
    /// The process whose collector takes the queued records.
    process: Process,
    /// The value of the shared counter of reentrant records when this set was created. Earlier sets
    /// have counted these records.
    reentrant_before: u64,
    collector: Arc<dyn Notify>,
}

#[derive(Debug, Default)]
struct Registry {
    queues: Vec<Arc<ThreadQueue>>,
    /// Queues of threads that have ended. The next new threads continue them.
    retired: Vec<Arc<ThreadQueue>>,
    /// The counts of removed queues.
    gone: QueueCounts,
    closed: bool,
}

impl QueueSet {
    /// Creates queues that together hold at most `bytes` bytes. `collector` is woken when much of
    /// that is unread.
    ///
    /// Threads find the set by its key, which is not 0 and unique in a process.
    pub(crate) fn new(
        key: u64,
        bytes: usize,
        overflow: Overflow,
        collector: Arc<dyn Notify>,
    ) -> Self {
        barrier::prepare();
        let aside = Arc::new(ThreadQueue::default());
        Self {
            key,
            overflow,
            budget: Budget::new(bytes),
            registry: Mutex::new(Registry {
                queues: vec![Arc::clone(&aside)],
                ..Registry::default()
            }),
            changes: AtomicU64::new(1),
            aside,
            handover: Handover::default(),
            ages: AtomicU64::new(0),
            threads: AtomicUsize::new(0),
            unread: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            process: Process::this(),
            reentrant_before: reentrance::counted(key),
            collector,
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key by which threads know the set.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// The number of threads with a queue.
    pub(super) fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    pub(super) fn overflow(&self) -> Overflow {
        self.overflow
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    pub(super) fn wake_collector(&self) {
        self.collector.notify();
    }

    /// Counts bytes that the collector may read, and wakes it if there are too many.
    ///
    /// Waking a sleeping thread costs as much as a hundred records, so one full block is no reason:
    /// while there is room, the collector polls often enough by itself.
    pub(super) fn count_unread(&self, bytes: usize) {
        let unread = self.unread.fetch_add(bytes, Ordering::Relaxed);
        if unread + bytes >= self.budget.wake_bytes() {
            self.wake_collector();
        }
    }

    /// Returns a number above all earlier ones.
    pub(super) fn next_age(&self) -> u64 {
        self.ages.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether this is a forked child of the process that made the set. It must not take a lock of
    /// the set.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.process.is_other()
    }

    /// Whether threads may no longer wait for room.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// From now on no thread waits for room. Waiting threads are woken, and their records are lost.
    pub(crate) fn stop_waiting(&self) {
        self.stopping.store(true, Ordering::Release);
        self.budget.wake_waiters();
    }

    /// Takes no more records; queued records can still be claimed.
    pub(crate) fn close(&self) {
        let _inside = Inside::enter();
        self.stop_waiting();
        let mut registry = self.registry();
        registry.closed = true;
        for queue in &registry.queues {
            queue.close();
        }
        drop(registry);
        self.handover.close();
        self.budget.wake_waiters();
    }

    /// Passes a whole batch to the collector when that has taken the one before; returns whether it
    /// was accepted. Records that the thread has emitted before keep their place before it.
    pub(crate) fn hand_over(&self, batch: RecordBatch) -> bool {
        let is_accepted = self.handover.put(batch);
        self.wake_collector();
        is_accepted
    }

    /// The place of whole batches.
    pub(crate) fn handover(&self) -> &Handover {
        &self.handover
    }

    /// Counts a record that was refused.
    pub(super) fn refuse(&self, reason: LossReason) -> Outcome {
        self.aside.refuse(reason)
    }

    /// Returns a queue for a new thread.
    pub(super) fn enter(&self) -> Arc<ThreadQueue> {
        self.threads.fetch_add(1, Ordering::Relaxed);
        let mut registry = self.registry();
        if let Some(queue) = registry.retired.pop() {
            queue.set_owned(true);
            return queue;
        }
        let queue = Arc::new(ThreadQueue::default());
        if registry.closed {
            queue.close();
        }
        registry.queues.push(Arc::clone(&queue));
        self.changes.fetch_add(1, Ordering::Release);
        queue
    }

    /// Takes back the queue of a thread that ends. Its records will still be read.
    pub(super) fn leave(&self, queue: Arc<ThreadQueue>) {
        self.threads.fetch_sub(1, Ordering::Relaxed);
        let mut registry = self.registry();
        queue.set_owned(false);
        registry.retired.push(queue);
    }

    /// Begins a round of the collector: updates its list of queues. `known` is the last change that
    /// it has seen. Returns whether a thread has found no room since the last round.
    pub(crate) fn begin_round(&self, known: &mut u64, queues: &mut Vec<Arc<ThreadQueue>>) -> bool {
        self.unread.store(0, Ordering::Relaxed);
        self.refresh(known, queues);
        self.budget.take_pressed()
    }

    /// Ends a round of the collector: releases the empty queues of ended threads.
    ///
    /// It also wakes waiting threads, because the next room will only come with the next round.
    pub(crate) fn end_round(&self) {
        self.budget.notify_waiters();
        let mut registry = self.registry();
        if registry.retired.is_empty() {
            return;
        }
        let Registry {
            queues,
            retired,
            gone,
            ..
        } = &mut *registry;
        let before = queues.len();
        queues.retain(|queue| {
            let is_abandoned = queue.is_abandoned();
            if is_abandoned {
                queue.count(gone);
            }
            !is_abandoned
        });
        if queues.len() < before {
            retired.retain(|queue| !queue.is_abandoned());
            queues.shrink_to_fit();
            retired.shrink_to_fit();
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Updates the collector's list of queues; `known` is the last change that it has seen.
    pub(crate) fn refresh(&self, known: &mut u64, queues: &mut Vec<Arc<ThreadQueue>>) {
        if self.changes.load(Ordering::Acquire) == *known {
            return;
        }
        let registry = self.registry();
        *known = self.changes.load(Ordering::Acquire);
        queues.clone_from(&registry.queues);
    }

    /// Drops the oldest block of all threads that is neither being read nor filled; returns whether
    /// there was one.
    pub(super) fn evict_oldest(&self) -> bool {
        let registry = self.registry();
        let oldest = registry
            .queues
            .iter()
            .filter_map(|queue| Some((queue.oldest()?, queue)))
            .min_by_key(|(age, _)| *age);
        let evicted = oldest.and_then(|(_, queue)| queue.evict());
        evicted
            .map(|(block, charged)| self.release(block, charged))
            .is_some()
    }

    /// Gives back a block and the bytes that were charged for it.
    pub(super) fn release(&self, block: Arc<Block>, charged: usize) {
        // A thread may not have noticed that its queue was closed while it appended. No other
        // thread may get its block.
        if self.is_stopping() {
            self.budget.release(charged);
        } else {
            self.budget.release_block(block, charged);
        }
    }

    /// Returns the counts of all queues. Takes every queue's lock for a moment.
    pub(crate) fn counts(&self) -> QueueCounts {
        let _inside = Inside::enter();
        let registry = self.registry();
        let mut counts = registry.gone.clone();
        for queue in &registry.queues {
            queue.count(&mut counts);
        }
        self.handover.count(&mut counts);
        let reentrant = reentrance::counted(self.key) - self.reentrant_before;
        counts.emitted += reentrant;
        counts.lost.add(LossReason::Reentrant, reentrant);
        counts
    }

    /// Whether records come faster than the collector takes them.
    pub(crate) fn is_backlog(&self) -> bool {
        self.budget.is_backlog()
    }

    /// The bytes of all blocks that are queued or being read.
    pub(crate) fn bytes(&self) -> usize {
        self.budget.charged()
    }
}

impl fmt::Debug for QueueSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueSet")
            .field("overflow", &self.overflow)
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
