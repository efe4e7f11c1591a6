//! Times as whole nanoseconds.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the Unix epoch.
pub fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = nanos(now.expect("the clock is after 1970"));
    i64::try_from(now).expect("the clock is before 2262")
}

/// The time that is left until then; zero if it is over.
pub fn time_until(then: Instant) -> Duration {
    then.saturating_duration_since(Instant::now())
}

/// The nanoseconds of a time; saturates after five centuries.
#[inline]
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
