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
mod tests;
