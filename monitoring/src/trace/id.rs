//! The ids of traces.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// So many ids a thread takes at once: what all threads share is written once for all of them.
const TAKEN_AT_ONCE: i64 = 64;

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
    static RANDOM: OnceLock<i64> = OnceLock::new();
    static COUNTER: AtomicI64 = AtomicI64::new(0);
    let random = *RANDOM.get_or_init(|| {
        // The standard library seeds its hash tables with the system's random numbers.
        let number = RandomState::new().build_hasher().finish() >> 33;
        i64::try_from(number).unwrap_or(0) << 32
    });
    random.wrapping_add(COUNTER.fetch_add(TAKEN_AT_ONCE, Ordering::Relaxed))
}
