//! The limits of a decoder for a chunk.

use super::error::DecodeErrorKind;
use crate::number::to_u64;

/// The limits of a decoder for a chunk.
///
/// Declared lengths are checked against these limits, and against the remaining bytes, before
/// anything is allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest chunk, in bytes. Default 64 MiB.
    pub chunk_bytes: usize,
    /// The largest body after decompression, in bytes. Default 256 MiB.
    pub body_bytes: usize,
    /// The largest ratio of the body to its compressed form. Default 4,096. It does not apply to
    /// bodies of up to 1 MiB.
    pub ratio: usize,
    /// The largest zstd window, as a power of two. Default 27 (128 MiB), the format's own
    /// recommended limit (RFC 8878, section 3.1.1.1.2).
    pub window_log: u32,
    /// The most records. Default 4 Mi.
    pub records: usize,
    /// The most record types. Default 4,096.
    pub types: usize,
    /// The most strings. Default 4 Mi.
    pub strings: usize,
    /// The most memory of the decoded columns, in bytes. Default 1 GiB.
    pub decoded_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            chunk_bytes: 64 << 20,
            body_bytes: 256 << 20,
            ratio: 4_096,
            window_log: 27,
            records: 4 << 20,
            types: 4_096,
            strings: 4 << 20,
            decoded_bytes: 1 << 30,
        }
    }
}

/// Counts down the memory that a decoded chunk may take ([`Limits::decoded_bytes`]).
///
/// Constant columns make many values of a few bytes, so the remaining input is no limit. Every
/// allocation is charged here first.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    left: usize,
}

impl Budget {
    /// Creates a budget of `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, left: limit }
    }

    /// Takes `count` times `each` bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeErrorKind::Limit`] when that is more than is left.
    pub(super) fn charge(&mut self, count: usize, each: usize) -> Result<(), DecodeErrorKind> {
        let bytes = count.saturating_mul(each);
        let Some(left) = self.left.checked_sub(bytes) else {
            let spent = self.limit - self.left;
            return Err(DecodeErrorKind::Limit {
                limit: to_u64(self.limit),
                found: to_u64(spent.saturating_add(bytes)),
            });
        };
        self.left = left;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
