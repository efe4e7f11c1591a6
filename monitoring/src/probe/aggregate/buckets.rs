//! The histogram of a cell: which bucket a duration is in, in a few instructions.

use crate::queue::sync::AtomicU64;

/// The histogram of a cell, by [`bucket_of`].
pub(super) type Histogram = Box<[AtomicU64; BUCKETS]>;

/// A bucket for each four leading bits behind the first one and each power of two up to 2^63.
pub(super) const BUCKETS: usize = if cfg!(all(test, baler_loom)) {
    2
} else {
    64 << 4
};

/// The bucket for nothing: that of 2^63 nanoseconds, nearly 300 years, which no call takes.
pub(super) const ZERO_BUCKET: usize = 62 << 4;

/// Powers of two from this one on, 73 years, are not those of durations but of fractions of a
/// nanosecond, a few ticks, for of the exponent there are only the lowest bits.
const FRACTION: usize = 61;

/// Longer calls count as one of this number of nanoseconds.
pub(super) const LONGEST: u64 = 1 << (FRACTION - 1);

/// The number of the bucket for a number of nanoseconds above 0 in a cell: the lowest bits of the
/// exponent and the leading bits of the number, which a processor finds in the floating-point number
/// by a shift.
///
/// Each of these buckets is within one of
/// [`LogLinear`](baler_common::record::timing::LogLinear), see [`log_linear`].
#[inline(always)]
pub(super) fn bucket_of(nanoseconds: f64) -> usize {
    let bits = usize::try_from(nanoseconds.to_bits() >> 48).unwrap_or(0);
    // So many that the compiler sees that there is such a bucket.
    bits % BUCKETS
}

/// The bucket of [`LogLinear`](baler_common::record::timing::LogLinear) that holds this bucket of a
/// cell.
pub(super) fn log_linear(bucket: usize) -> usize {
    // The exponent of 1 is 1,023.
    let (exponent, leading) = (((bucket >> 4) + 1) % 64, (bucket & 15) | 16);
    if exponent >= FRACTION {
        return 0;
    }
    match exponent.checked_sub(4) {
        Some(above) => (above << 4).saturating_add(leading),
        None => leading >> (4_usize.saturating_sub(exponent)),
    }
}

pub(super) fn empty_histogram() -> Histogram {
    Box::new(std::array::from_fn(|_| AtomicU64::new(0)))
}

/// As a signed number, for which there is one instruction; durations are less than half of all
/// numbers.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "a bucket has four leading bits")]
pub(super) fn to_f64(duration: u64) -> f64 {
    (duration as i64) as f64
}

#[cfg(test)]
#[cfg(not(baler_loom))]
mod tests;
