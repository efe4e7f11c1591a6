//! All queues of one controller.

use std::fmt;
use std::sync::{Arc, PoisonError};

use baler_common::container::{LossReason, Losses};
use baler_common::transport::Notify;

use super::barrier;
use super::block::QueueRow;
use super::budget::{Budget, Overflow};
use super::reentrance::{self, Inside};
use super::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};
use super::thread_queue::{Outcome, ThreadQueue};
use crate::fork::Process;

/// The queues of all threads of one controller, and the one beside them for records that no
/// thread's queue can take.
pub(crate) struct QueueSet {
    key: u64,
    overflow: Overflow,
    budget: Budget,
    registry: Mutex<Registry>,
    /// Counts changes of the registry.
    changes: AtomicU64,
    /// Takes records that a thread emits after its thread-local storage is gone.
    aside: Arc<ThreadQueue>,
    ages: AtomicU64,
    /// Threads that have a queue.
    threads: AtomicUsize,
    /// Bytes that were handed to the collector since it began its last round.
    unread: AtomicUsize,
    stopping: AtomicBool,
    /// The process whose collector takes the queued records.
    process: Process,
    /// How many records were counted as reentrant by others of the same count before.
    reentrant_before: u64,
    collector: Arc<dyn Notify>,
}

#[derive(Debug, Default)]
struct Registry {
    queues: Vec<Arc<ThreadQueue>>,
    /// Those of threads that have ended: the next new threads continue them.
    retired: Vec<Arc<ThreadQueue>>,
    /// What queues have counted that are gone.
    gone: QueueCounts,
    closed: bool,
}

/// What the queues have counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueCounts {
    /// Records that were emitted, taken or not.
    pub(crate) emitted: u64,
    /// Records that are still queued.
    pub(crate) queued: u64,
    /// Records lost before the collector had them.
    pub(crate) lost: Losses,
}

impl QueueSet {
    /// Queues that together hold at most `bytes` bytes; `collector` is woken when much is in them.
    ///
    /// Threads find the set by the key: not 0, and another one for each set of a process.
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

    /// What threads know the set by.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// How many threads have a queue.
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

    /// Counts bytes that the collector may read; wakes it when it should not wait for its turn.
    ///
    /// Waking a thread that sleeps costs as much as a hundred records, so a full block alone is no
    /// reason: the collector looks often enough by itself as long as there is room.
    pub(super) fn count_unread(&self, bytes: usize) {
        let unread = self.unread.fetch_add(bytes, Ordering::Relaxed);
        if unread.saturating_add(bytes) >= self.budget.wake_bytes() {
            self.wake_collector();
        }
    }

    /// A number above all before.
    pub(super) fn next_age(&self) -> u64 {
        self.ages.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether this is the child of the process that made the set. It must not take a lock of the set.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.process.is_other()
    }

    /// Whether nobody may wait for room any more.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// From now on nobody waits for room; who does is woken, and its record is lost.
    pub(crate) fn stop_waiting(&self) {
        self.stopping.store(true, Ordering::Release);
        self.budget.wake_waiters();
    }

    /// Takes nothing any more; queued records can still be claimed.
    pub(crate) fn close(&self) {
        let _inside = Inside::enter();
        self.stop_waiting();
        let mut registry = self.registry();
        registry.closed = true;
        for queue in &registry.queues {
            queue.close();
        }
        drop(registry);
        self.budget.wake_waiters();
    }

    /// Appends a record beside the threads' queues. Takes a lock that all threads share.
    pub(crate) fn push_aside(&self, row: &QueueRow<'_>) -> Outcome {
        let _inside = Inside::enter();
        self.aside.push_shared(self, row)
    }

    /// Appends a record of the collector's own, of which there are few: it may not wait for the room
    /// that only it can make.
    pub(crate) fn push_own(&self, row: &QueueRow<'_>) {
        self.aside.push_own(self, row);
    }

    /// Counts a record that was not taken.
    pub(super) fn refuse(&self, reason: LossReason) -> Outcome {
        self.aside.refuse(reason)
    }

    /// A queue for a new thread.
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

    /// Takes back the queue of a thread that ends; its records will still be read.
    pub(super) fn leave(&self, queue: Arc<ThreadQueue>) {
        self.threads.fetch_sub(1, Ordering::Relaxed);
        let mut registry = self.registry();
        queue.set_owned(false);
        registry.retired.push(queue);
    }

    /// The collector begins a round: brings its list of queues up to date, of which `known` is the
    /// change that it has seen last. Whether somebody has found no room since the last round.
    pub(crate) fn begin_round(&self, known: &mut u64, queues: &mut Vec<Arc<ThreadQueue>>) -> bool {
        self.unread.store(0, Ordering::Relaxed);
        self.refresh(known, queues);
        self.budget.take_pressed()
    }

    /// The collector has been everywhere: lets go of the queues of ended threads that are empty.
    ///
    /// There is now as much room as there will be for some time.
    pub(crate) fn end_round(&self) {
        self.budget.tell();
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

    /// Brings the collector's list of queues up to date; `known` is the change it has seen last.
    pub(crate) fn refresh(&self, known: &mut u64, queues: &mut Vec<Arc<ThreadQueue>>) {
        if self.changes.load(Ordering::Acquire) == *known {
            return;
        }
        let registry = self.registry();
        *known = self.changes.load(Ordering::Acquire);
        queues.clone_from(&registry.queues);
    }

    /// Drops the oldest block of all threads that nobody reads or fills; whether there was one.
    pub(super) fn evict_oldest(&self) -> bool {
        let registry = self.registry();
        let oldest = registry
            .queues
            .iter()
            .filter_map(|queue| Some((queue.oldest()?, queue)))
            .min_by_key(|(age, _)| *age);
        oldest.is_some_and(|(_, queue)| queue.evict(self))
    }

    /// What all queues have counted. Takes every queue's lock for a moment.
    pub(crate) fn counts(&self) -> QueueCounts {
        let _inside = Inside::enter();
        let registry = self.registry();
        let mut counts = registry.gone.clone();
        for queue in &registry.queues {
            queue.count(&mut counts);
        }
        let reentrant = reentrance::counted(self.key).saturating_sub(self.reentrant_before);
        counts.emitted = counts.emitted.saturating_add(reentrant);
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
