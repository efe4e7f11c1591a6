//! An open loop: records are due at times fixed beforehand, however slow the medium is.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Records that became due are emitted so often.
///
/// Sleeping for each would cost more than most of what is measured; what the load itself costs is
/// measured too ([`Way::Pacing`](super::Way::Pacing)).
pub(super) const TICK: Duration = Duration::from_millis(1);

/// Nanoseconds since the Unix epoch.
pub(super) fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}

/// Ticks at fixed times.
#[derive(Debug)]
pub(super) struct Ticks {
    next: Instant,
}

impl Ticks {
    pub(super) fn start() -> Self {
        Self {
            next: Instant::now() + TICK,
        }
    }

    /// Waits for the next tick; one that is missed is not made up for, since whoever asks does
    /// everything that is due anyway.
    pub(super) fn wait(&mut self) {
        loop {
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::park_timeout(left);
        }
        let now = Instant::now();
        while self.next <= now {
            self.next += TICK;
        }
    }
}
