//! The last time of an event that several threads see.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The last time at which an event happened; at first, the time of its creation.
#[derive(Debug)]
pub(crate) struct LastTime {
    created: Instant,
    after_ms: AtomicU64,
}

impl Default for LastTime {
    fn default() -> Self {
        Self {
            created: Instant::now(),
            after_ms: AtomicU64::new(0),
        }
    }
}

impl LastTime {
    /// Records that the event happens now.
    pub(crate) fn note(&self) {
        let after_ms = u64::try_from(self.created.elapsed().as_millis());
        let after_ms = after_ms.expect("no process runs for 2^64 ms");
        self.after_ms.fetch_max(after_ms, Ordering::AcqRel);
    }

    /// Returns the last time, rounded down to a millisecond.
    pub(crate) fn get(&self) -> Instant {
        self.created + Duration::from_millis(self.after_ms.load(Ordering::Acquire))
    }
}
