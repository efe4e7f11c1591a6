//! The ids of traces.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::controller::random;

/// So many ids a thread takes at once: what all threads share is written once for all of them.
const TAKEN_AT_ONCE: i64 = 64;

/// The id that a thread takes next; 0 before the first one of a process.
static NEXT: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// The next id of this thread, and how many it has left.
    static OWN: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

/// A new trace id, never negative.
///
/// The upper 31 bits are random, the lower 32 bits count, as in Kieker's `IdGenerator`; a counter
/// that overflows carries into the upper bits. Those of one thread follow each other.
#[inline]
pub(super) fn next_trace_id() -> i64 {
    next_at_hand().unwrap_or_else(|| {
        let id = take();
        OWN.set((id.wrapping_add(1), TAKEN_AT_ONCE.wrapping_sub(1)));
        id & i64::MAX
    })
}

/// A new trace id for a trace that another one called. Both have the same [`lane_group`].
pub(super) fn next_trace_id_beside(caller: i64) -> i64 {
    let id = next_trace_id();
    let differing = lane_group(id as u64) ^ lane_group(caller as u64);
    // These bits are random: neither the sign nor the counter, by which ids of a process differ.
    id ^ (i64::from(differing) << 32)
}

/// The part of a trace's id that decides its lane. Traces that call each other have the same one,
/// also in different processes.
pub(crate) fn lane_group(trace: u64) -> u16 {
    let [a, b, c, d, e, f, g, h] = trace.to_be_bytes();
    u16::from_be_bytes([a ^ c ^ e ^ g, b ^ d ^ f ^ h])
}

/// A new trace id, if this thread has one.
#[inline]
pub(super) fn next_at_hand() -> Option<i64> {
    let (next, left) = OWN.get();
    if left <= 0 {
        return None;
    }
    OWN.set((next.wrapping_add(1), left.wrapping_sub(1)));
    Some(next & i64::MAX)
}

#[cold]
fn take() -> i64 {
    if NEXT.load(Ordering::Relaxed) == 0 {
        let upper = i64::try_from(random() >> 33).unwrap_or(0).max(1);
        // Another thread may have been faster.
        NEXT.compare_exchange(0, upper << 32, Ordering::Relaxed, Ordering::Relaxed)
            .unwrap_or_default();
    }
    NEXT.fetch_add(TAKEN_AT_ONCE, Ordering::Relaxed)
}

/// In the child of a fork: the parent's ids are not used, neither by this thread nor by others.
#[cfg(unix)]
pub(crate) fn forget_ids() {
    OWN.set((0, 0));
    NEXT.store(0, Ordering::Relaxed);
    super::forget_next_id();
}
