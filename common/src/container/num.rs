//! Conversions between the machine's sizes and those in a chunk.

/// A number of a chunk as a size; what does not fit is larger than any limit.
pub(super) fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A size as a number of a chunk.
pub(super) fn to_u64(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}
