//! Taking rows out of all queues, block by block.

use std::sync::Arc;

use crate::queue::{Block, QueueSet, Row, ThreadQueue};

/// Goes round the threads' queues; the rows of one thread stay in order.
#[derive(Debug)]
pub(super) struct Drain {
    set: Arc<QueueSet>,
    queues: Vec<Arc<ThreadQueue>>,
    /// The change of the set that `queues` shows.
    known: u64,
    /// The queue being visited, and how far it was filled when the visit began.
    next: usize,
    mark: Option<u64>,
    /// The block being read; it stays charged to the budget until it is read to its end.
    block: Option<Block>,
}

/// How far the queues were filled at some time.
#[derive(Debug)]
pub(super) struct Marks(Vec<(Arc<ThreadQueue>, u64)>);

impl Drain {
    pub(super) fn new(set: Arc<QueueSet>) -> Self {
        Self {
            set,
            queues: Vec::new(),
            known: 0,
            next: 0,
            mark: None,
            block: None,
        }
    }

    /// Learns of new queues and starts a round; the queue beside the threads' comes first.
    ///
    /// A round takes from each queue what was in it when its turn came. It ends however fast the
    /// threads are, and what the next round finds was emitted after this one began.
    pub(super) fn start_round(&mut self) {
        self.set.refresh(&mut self.known, &mut self.queues);
        self.next = 0;
        self.mark = None;
    }

    /// Hands the next row to `take`; `None` when the round is over.
    ///
    /// The row counts as taken even if `take` panics.
    pub(super) fn next_row<T>(&mut self, take: impl FnOnce(Row<'_>) -> T) -> Option<T> {
        loop {
            if let Some(block) = &mut self.block {
                if let Some(row) = block.next_row() {
                    return Some(take(row));
                }
                if let Some(block) = self.block.take() {
                    self.set.release(block);
                }
            }
            // Blocks are claimed one by one: those that are not can be evicted to make room.
            let queue = self.queues.get(self.next)?;
            let mark = *self.mark.get_or_insert_with(|| queue.appended());
            if queue.taken() < mark {
                self.block = queue.claim();
            } else {
                self.mark = None;
                self.next = self.next.saturating_add(1);
            }
        }
    }

    /// Whether a block is being read.
    pub(super) fn is_reading(&self) -> bool {
        self.block.is_some()
    }

    /// How far the queues are filled now.
    pub(super) fn marks(&mut self) -> Marks {
        self.set.refresh(&mut self.known, &mut self.queues);
        let marks = self.queues.iter();
        Marks(
            marks
                .map(|queue| (Arc::clone(queue), queue.appended()))
                .collect(),
        )
    }

    /// Whether everything up to the marks was handed out.
    pub(super) fn has_passed(&self, marks: &Marks) -> bool {
        !self.is_reading() && marks.0.iter().all(|(queue, mark)| queue.taken() >= *mark)
    }
}
