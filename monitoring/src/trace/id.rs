//! The ids of traces.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// A new trace id, never negative.
///
/// The upper 31 bits are random, the lower 32 bits count, as in Kieker's `IdGenerator`; a counter
/// that overflows carries into the upper bits.
pub(super) fn next_trace_id() -> i64 {
    static RANDOM: OnceLock<i64> = OnceLock::new();
    static COUNTER: AtomicI64 = AtomicI64::new(0);
    let random = *RANDOM.get_or_init(|| {
        // The standard library seeds its hash tables with the system's random numbers.
        let number = RandomState::new().build_hasher().finish() >> 33;
        i64::try_from(number).unwrap_or(0) << 32
    });
    random.wrapping_add(COUNTER.fetch_add(1, Ordering::Relaxed)) & i64::MAX
}
