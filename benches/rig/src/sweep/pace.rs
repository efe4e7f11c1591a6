//! An open loop: records are due at fixed times, however slow the medium is.
//!
//! They are emitted in bursts, which are due at fixed times, too.
//! Latency counts from the time at which a record's burst was due, even if the load was late.

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time;

/// When bursts are due, in nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bursts {
    /// The first one.
    pub(super) start_ns: i64,
    /// Between two of them.
    pub(super) every_ns: i64,
}

impl Bursts {
    pub(super) fn new(start_ns: i64, every: Duration) -> Self {
        Self {
            start_ns,
            every_ns: i64::try_from(every.as_nanos()).unwrap_or(i64::MAX).max(1),
        }
    }

    /// The latest burst that was due at this time.
    pub(super) fn before(&self, now_ns: i64) -> i64 {
        let since = now_ns.saturating_sub(self.start_ns);
        now_ns.saturating_sub(since.rem_euclid(self.every_ns))
    }

    /// The burst in which a record that is due at this time is emitted: the first one after it.
    pub(super) fn of(&self, due_ns: i64) -> i64 {
        self.before(due_ns).saturating_add(self.every_ns)
    }

    /// Waits for the first burst after this time.
    pub(super) fn wait_after(&self, now_ns: i64) {
        let until = self.of(now_ns);
        let mut now = now_ns;
        while now < until {
            let left = u64::try_from(until.saturating_sub(now)).unwrap_or(0);
            thread::park_timeout(Duration::from_nanos(left));
            now = time::now_ns();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_in_the_first_burst_after_it() {
        let bursts = Bursts::new(1_000, Duration::from_nanos(50));
        let of = [999, 1_000, 1_049, 1_050].map(|due| bursts.of(due));
        assert_eq!(of, [1_000, 1_050, 1_050, 1_100]);
        let before = [999, 1_000, 1_049, 1_050].map(|now| bursts.before(now));
        assert_eq!(before, [950, 1_000, 1_000, 1_050]);
    }

    #[test]
    fn a_burst_is_waited_for_and_not_missed() {
        let bursts = Bursts::new(7, Duration::from_millis(3));
        let before = time::now_ns();
        bursts.wait_after(before);
        assert!(time::now_ns() >= bursts.of(before));
    }
}
