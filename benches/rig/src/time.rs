//! Times as whole nanoseconds, in which processes tell each other what is due when.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the Unix epoch.
pub fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(nanos(now.unwrap_or_default())).unwrap_or(i64::MAX)
}

/// The nanoseconds of a time; of one beyond five centuries, the most there are.
#[inline]
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The whole nanoseconds of so many.
pub fn whole(nanos: f64) -> i64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the conversion saturates, and a fraction of a nanosecond is nothing"
    )]
    let whole = nanos as i64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_nanoseconds() {
        assert_eq!(nanos(Duration::new(3, 7)), 3_000_000_007);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
        assert_eq!(whole(-2.9), -2);
        assert_eq!(whole(f64::INFINITY), i64::MAX);
        let before = now_ns();
        assert!(before > 1_700_000_000_000_000_000 && now_ns() >= before);
    }
}
