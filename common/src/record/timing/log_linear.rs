//! Buckets that are the wider the larger the values in them are.

/// Buckets of a histogram for values from 0 to 2^64 - 1: below 32 one a value, above that 16 of equal
/// width for each power of two, so that a bucket is at most 1/16 as wide as its values are large.
///
/// The numbers are part of what [`AggregatedDurationRecord`](super::AggregatedDurationRecord) means
/// and stay as they are: bucket `b` below 32 holds the value `b`; with `e = b / 16 - 1` and
/// `m = b % 16 + 16` every other one holds `m << e` up to `((m + 1) << e) - 1`.
/// It is the layout of HdrHistogram with a fixed precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLinear;

/// The buckets of a power of two, as bits.
const BITS: u32 = 4;

impl LogLinear {
    /// How many buckets there are.
    pub const BUCKETS: usize = 976;

    /// The number of the bucket that holds a value, below [`BUCKETS`](Self::BUCKETS).
    #[inline]
    pub const fn bucket_of(value: u64) -> u32 {
        let magnitude = (value | (1 << BITS)).ilog2().wrapping_sub(BITS);
        let mantissa = (value >> magnitude).to_le_bytes();
        // From 16 to 31, or less for the smallest values.
        (magnitude << BITS).wrapping_add(u32::from_le_bytes([mantissa[0], 0, 0, 0]))
    }

    /// The smallest value of a bucket.
    pub fn lowest(bucket: u32) -> u64 {
        let Some(exponent) = (bucket >> BITS).checked_sub(1) else {
            return u64::from(bucket);
        };
        let mantissa = u64::from((bucket & ((1 << BITS) - 1)) | (1 << BITS));
        // Beyond the last bucket there is nothing.
        mantissa
            .checked_shl(exponent)
            .filter(|_| exponent < 60)
            .unwrap_or(u64::MAX)
    }

    /// The largest value of a bucket.
    pub fn highest(bucket: u32) -> u64 {
        match Self::lowest(bucket.saturating_add(1)) {
            u64::MAX => u64::MAX,
            next => next.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::LogLinear;

    #[test]
    fn buckets_follow_each_other_without_gap_or_overlap() {
        let last = u32::try_from(LogLinear::BUCKETS).unwrap() - 1;
        assert_eq!(LogLinear::lowest(0), 0);
        for bucket in 0..last {
            assert_eq!(
                LogLinear::highest(bucket) + 1,
                LogLinear::lowest(bucket + 1)
            );
            assert_eq!(LogLinear::bucket_of(LogLinear::lowest(bucket)), bucket);
            assert_eq!(LogLinear::bucket_of(LogLinear::highest(bucket)), bucket);
        }
        assert_eq!(LogLinear::highest(last), u64::MAX);
        assert_eq!(LogLinear::bucket_of(u64::MAX), last);
        assert_eq!(LogLinear::highest(u32::MAX), u64::MAX);
    }

    #[test]
    fn numbers_stay_as_they_are() {
        let numbers = [0, 15, 16, 31, 32, 33, 34, 1_000, 1 << 40].map(LogLinear::bucket_of);
        assert_eq!(numbers, [0, 15, 16, 31, 32, 32, 33, 111, 592]);
    }

    proptest! {
        #[test]
        fn a_bucket_is_narrow(value in any::<u64>()) {
            let bucket = LogLinear::bucket_of(value);
            let (low, high) = (LogLinear::lowest(bucket), LogLinear::highest(bucket));
            prop_assert!(low <= value && value <= high);
            prop_assert!(high - low <= value / 16);
        }
    }
}
