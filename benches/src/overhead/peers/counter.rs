//! What arrived, counted without a cache line that threads share.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use baler_rig::overhead::End;

use crate::Failure;

/// What threads that ended have counted, and what collectors count at once.
static ARRIVED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static MINE: Mine = const { Mine(Cell::new(0)) };
}

/// What a thread has counted and not told yet.
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

/// Counts so many, on any thread.
pub(super) fn arrived(records: u64) {
    ARRIVED.fetch_add(records, Ordering::Relaxed);
}

/// How many of so many calls did not arrive; called when nothing arrives any more.
pub(super) fn end(calls: u64) -> Result<End, Failure> {
    // Where the calls were made by this thread.
    MINE.with(|mine| arrived(mine.0.take()));
    let arrived = ARRIVED.load(Ordering::Relaxed);
    let lost = calls.checked_sub(arrived);
    let lost = lost.ok_or_else(|| Failure::new(format!("{arrived} of {calls} calls arrived")))?;
    Ok(End { lost })
}
