//! The wall clock of the operating system.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the operating system's time in nanoseconds since the Unix epoch. A time outside the
/// range of an `i64` (1677 to 2262) becomes the nearest one.
pub(crate) fn system_unix_ns() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, i64::wrapping_neg)
        }
    }
}
