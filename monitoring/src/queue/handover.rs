//! Whole batches on their way to the collector, past the queues.
//!
//! A program that passes records on has them in batches already. In a queue, each record becomes a
//! row, and then a part of a batch again. That takes a quarter of the program's CPU time.

use std::sync::PoisonError;

use baler_common::number::to_u64;
use baler_common::record::RecordBatch;

use super::sync::{Condvar, Mutex, MutexGuard};
use super::thread_queue::QueueCounts;

/// Holds one batch until the collector takes it.
#[derive(Debug, Default)]
pub(crate) struct Handover {
    place: Mutex<Place>,
    taken: Condvar,
}

#[derive(Debug, Default)]
struct Place {
    batch: Option<RecordBatch>,
    /// Batches and records that were put here so far.
    batches: u64,
    records: u64,
    is_closed: bool,
}

impl Handover {
    fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the collector has taken the batch before, or until the end.
    fn free(&self) -> MutexGuard<'_, Place> {
        let mut place = self.lock();
        while place.batch.is_some() && !place.is_closed {
            let waited = self.taken.wait(place);
            place = waited.unwrap_or_else(PoisonError::into_inner);
        }
        place
    }

    /// Waits until the collector has taken all batches before.
    pub(crate) fn wait_until_free(&self) {
        drop(self.free());
    }

    /// Puts a batch here when the place is free; returns whether it was before the end.
    pub(super) fn put(&self, batch: RecordBatch) -> bool {
        let mut place = self.free();
        if place.is_closed {
            return false;
        }
        place.batches += 1;
        place.records += to_u64(batch.len());
        place.batch = Some(batch);
        true
    }

    /// Takes the batch.
    pub(crate) fn take(&self) -> Option<RecordBatch> {
        let batch = self.lock().batch.take();
        self.taken.notify_all();
        batch
    }

    /// Whether a batch is here.
    pub(crate) fn has_batch(&self) -> bool {
        self.lock().batch.is_some()
    }

    /// The number of batches that were put here so far, and the number that were taken.
    pub(crate) fn passed(&self) -> (u64, u64) {
        let place = self.lock();
        (
            place.batches,
            place.batches - u64::from(place.batch.is_some()),
        )
    }

    /// Accepts no more batches. A batch that is here can still be taken.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.taken.notify_all();
    }

    /// Adds the counts of the records to `counts`.
    pub(super) fn count(&self, counts: &mut QueueCounts) {
        let place = self.lock();
        counts.emitted += place.records;
        counts.queued += place.batch.as_ref().map_or(0, |batch| to_u64(batch.len()));
    }
}
