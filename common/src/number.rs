//! Sizes in memory as numbers of 64 bits, and back.
//!
//! Every conversion that the machine can represent is exact. A value that does not fit becomes the
//! largest one, which no limit admits and no table has.

/// Converts a number to a size.
#[must_use]
#[inline]
pub fn to_usize(number: impl Into<u64>) -> usize {
    usize::try_from(number.into()).unwrap_or(usize::MAX)
}

/// Converts a size to a number.
#[must_use]
#[inline]
pub fn to_u64(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

/// A constant that is not zero, which the compiler checks: `non_zero!(64 << 20)`.
#[macro_export]
macro_rules! non_zero {
    ($value:expr) => {
        const {
            match ::core::num::NonZero::new($value) {
                Some(value) => value,
                None => unreachable!(),
            }
        }
    };
}
