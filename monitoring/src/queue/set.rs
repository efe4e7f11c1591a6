//! All queues of one controller.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baler_common::container::{LossReason, Losses};
use baler_common::record::{RowWriter, Schema};
use baler_common::transport::Notify;

use super::budget::Budget;
use super::overflow::Overflow;
use super::thread::ThreadQueue;

/// Numbers the sets of a process, so that a thread finds its queue in each.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// The queues of all threads of one controller, and the one beside them for records that no
/// thread's queue can take.
pub(crate) struct QueueSet {
    id: u64,
    overflow: Overflow,
    budget: Budget,
    registry: Mutex<Registry>,
    /// Counts changes of the registry.
    changes: AtomicU64,
    /// Takes what is emitted while a record is being built or after its thread's storage is gone.
    aside: Arc<ThreadQueue>,
    ages: AtomicU64,
    stopping: AtomicBool,
    pid: u32,
    collector: Arc<dyn Notify>,
}

#[derive(Debug, Default)]
struct Registry {
    queues: Vec<Arc<ThreadQueue>>,
    /// Those whose threads have ended: the next new threads continue them.
    retired: Vec<Arc<ThreadQueue>>,
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
    /// Queues that together hold so many bytes; `collector` is told of full blocks.
    pub(crate) fn new(bytes: usize, overflow: Overflow, collector: Arc<dyn Notify>) -> Self {
        let aside = Arc::new(ThreadQueue::default());
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            overflow,
            budget: Budget::new(bytes),
            registry: Mutex::new(Registry {
                queues: vec![Arc::clone(&aside)],
                ..Registry::default()
            }),
            changes: AtomicU64::new(1),
            aside,
            ages: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            pid: std::process::id(),
            collector,
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn id(&self) -> u64 {
        self.id
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

    /// A number above all before.
    pub(super) fn next_age(&self) -> u64 {
        self.ages.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether this is another process than the one that made the set.
    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.pid
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

    /// Takes nothing any more; what is queued can still be claimed.
    pub(crate) fn close(&self) {
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
    pub(crate) fn push_aside(
        &self,
        schema: &Arc<Schema>,
        timestamp: i64,
        write: impl FnOnce(&mut RowWriter<'_>),
    ) -> bool {
        let mut fields = Vec::new();
        let mut row = RowWriter::new(&mut fields);
        write(&mut row);
        if row.is_too_large() {
            return self.refuse(LossReason::TooLarge);
        }
        self.aside.push(self, schema, timestamp, &fields)
    }

    /// Counts a record that was not taken; `false` for the caller to return.
    pub(crate) fn refuse(&self, reason: LossReason) -> bool {
        self.aside.refuse(reason)
    }

    /// A queue for a new thread.
    pub(super) fn enter(&self) -> Arc<ThreadQueue> {
        let mut registry = self.registry();
        if let Some(queue) = registry.retired.pop() {
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

    /// Takes back the queue of a thread that ends; what is in it will still be claimed.
    pub(super) fn leave(&self, queue: Arc<ThreadQueue>) {
        self.registry().retired.push(queue);
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

    /// Gives a claimed block back.
    pub(crate) fn release(&self, block: super::Block) {
        self.budget.release(block);
    }

    /// Drops the oldest block of all threads; whether there was one.
    pub(super) fn evict_oldest(&self) -> bool {
        let registry = self.registry();
        let oldest = registry
            .queues
            .iter()
            .filter_map(|queue| Some((queue.oldest()?, queue)))
            .min_by_key(|(age, _)| *age);
        let evicted = oldest.and_then(|(_, queue)| queue.evict());
        drop(registry);
        evicted.map(|block| self.budget.release(block)).is_some()
    }

    /// What all queues have counted. Takes every queue's lock for a moment.
    pub(crate) fn counts(&self) -> QueueCounts {
        let mut counts = QueueCounts::default();
        for queue in &self.registry().queues {
            queue.count(&mut counts);
        }
        counts
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
