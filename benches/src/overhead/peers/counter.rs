//! The number of arrived records, counted without a cache line shared by threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use baler_rig::overhead::{Outer, Running};

use crate::Failure;

/// The sum of the counts of ended threads and of collectors.
static ARRIVED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static MINE: Mine = const { Mine(Cell::new(0)) };
}

/// The count of a thread. It is added to the sum at the thread's end.
struct Mine(Cell<u64>);

impl Drop for Mine {
    fn drop(&mut self) {
        arrived(self.0.take());
    }
}

/// Counts one on the calling thread.
#[inline]
pub(super) fn one_arrived() {
    MINE.with(|mine| mine.0.set(mine.0.get() + 1));
}

/// Counts this number, on any thread.
pub(super) fn arrived(records: u64) {
    ARRIVED.fetch_add(records, Ordering::Relaxed);
}

/// A rival whose records are counted at their end.
pub(super) struct Counted {
    pub(super) outer: Outer,
    /// Waits until no more records arrive.
    pub(super) flush: Box<dyn FnOnce()>,
}

impl Running for Counted {
    fn outer(&self) -> Outer {
        self.outer
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<u64, Failure> {
        (self.flush)();
        // Calls of this thread.
        MINE.with(|mine| arrived(mine.0.take()));
        let arrived = ARRIVED.load(Ordering::Relaxed);
        let lost = calls.checked_sub(arrived);
        lost.ok_or_else(|| Failure::new(format!("{arrived} of {calls} calls arrived")))
    }
}
