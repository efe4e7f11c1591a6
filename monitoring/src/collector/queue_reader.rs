//! Takes rows from all queues, in rounds. The rows of one thread stay in order.
//!
//! Next: `rounds`, which appends them to batches.

use std::sync::Arc;

use baler_common::record::RecordBatch;

use crate::queue::{BlockReader, QueueSet, ThreadQueue};

/// Visits the threads' queues one after the other.
///
/// A round takes from each queue the rows that were in it when the visit began. So it ends however
/// fast the threads emit. Rows that the next round finds were emitted after this round began.
#[derive(Debug)]
pub(super) struct QueueReader {
    set: Arc<QueueSet>,
    queues: Vec<Arc<ThreadQueue>>,
    /// The version of the registry that `queues` was copied from.
    known: u64,
    /// The queue being visited, and its fill position when the visit began.
    next: usize,
    mark: Option<u64>,
    /// Whether a thread found no room before this round.
    is_pressed: bool,
    /// Whether there was a whole batch before this round.
    has_batch: bool,
    /// The block being read. It stays charged to the budget until it is read to its end.
    pub(super) block: BlockReader,
}

/// The fill positions of the queues at some time.
#[derive(Debug)]
pub(super) struct QueuePositions {
    queues: Vec<(Arc<ThreadQueue>, u64)>,
    /// The number of whole batches so far.
    batches: u64,
}

impl QueueReader {
    pub(super) fn new(set: Arc<QueueSet>) -> Self {
        Self {
            set,
            queues: Vec::new(),
            known: 0,
            next: 0,
            mark: None,
            is_pressed: false,
            has_batch: false,
            block: BlockReader::default(),
        }
    }

    /// Learns of new queues and starts a round. The shared queue comes first.
    pub(super) fn start_round(&mut self) {
        // Records that were emitted before the batch are in the queues, and this round takes them.
        self.has_batch = self.set.handover().has_batch();
        self.is_pressed = self.set.begin_round(&mut self.known, &mut self.queues);
        self.next = 0;
        self.mark = None;
    }

    /// Whether there is another row; `false` when the round is over.
    pub(super) fn has_row(&mut self) -> bool {
        // Blocks are claimed one by one, so that unclaimed blocks can be evicted to make room.
        while !self.block.has_row() {
            let Some(queue) = self.queues.get(self.next) else {
                self.set.end_round();
                return false;
            };
            match queue.claim(&self.set, &mut self.mark, self.is_pressed) {
                Some(part) => self.block.read(part),
                None => {
                    self.mark = None;
                    self.next += 1;
                }
            }
        }
        true
    }

    /// Returns the current fill positions of the queues.
    pub(super) fn positions(&mut self) -> QueuePositions {
        self.set.refresh(&mut self.known, &mut self.queues);
        let queues = self.queues.iter();
        let (batches, _) = self.set.handover().passed();
        QueuePositions {
            queues: queues
                .map(|queue| (Arc::clone(queue), queue.appended()))
                .collect(),
            batches,
        }
    }

    /// Takes the whole batch that was there before the round, at the round's end.
    pub(super) fn take_batch(&mut self) -> Option<RecordBatch> {
        let has_batch = std::mem::take(&mut self.has_batch);
        has_batch.then(|| self.set.handover().take()).flatten()
    }

    /// Whether all rows up to these positions were taken.
    pub(super) fn has_passed(&self, positions: &QueuePositions) -> bool {
        !self.block.is_reading()
            && self.set.handover().passed().1 >= positions.batches
            && positions
                .queues
                .iter()
                .all(|(queue, mark)| queue.taken() >= *mark)
    }
}
