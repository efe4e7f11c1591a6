//! Compression of a native chunk's body.

use std::fmt;
use std::str::FromStr;

use super::error::{DecodeErrorKind, EncodeError};

/// The compression of a native chunk's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// A [`BlockCompression`] of another crate.
    Added {
        /// Its name.
        name: &'static str,
    },
    /// lz4 in block mode.
    Lz4,
    /// No compression.
    #[default]
    None,
    /// zstd at this level, 1 to 22.
    Zstd {
        /// The level; it is not stored in the chunk.
        level: i32,
    },
}

impl Compression {
    /// The name without the level, for tables and JSON: `none`, `lz4`, `zstd` or the name of an
    /// added one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added { name } => name,
            Self::Lz4 => "lz4",
            Self::None => "none",
            Self::Zstd { .. } => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zstd { level } => write!(f, "zstd:{level}"),
            other => f.write_str(other.name()),
        }
    }
}

/// The text does not name a compression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text} is no compression; use none, lz4, zstd or zstd:1 to zstd:22")]
pub struct ParseCompressionError {
    text: Box<str>,
}

impl FromStr for Compression {
    type Err = ParseCompressionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let level = match text {
            "none" => return Ok(Self::None),
            "lz4" => return Ok(Self::Lz4),
            "zstd" => Some(3),
            _ => text
                .strip_prefix("zstd:")
                .and_then(|level| level.parse().ok()),
        };
        level
            .filter(|level| (1..=22).contains(level))
            .map(|level| Self::Zstd { level })
            .ok_or_else(|| ParseCompressionError { text: text.into() })
    }
}

/// A compression of blocks that another crate adds to the native container.
///
/// # Requirements
///
/// [`decompress`](Self::decompress) gets untrusted bytes and must not panic. The container has
/// already checked the size of `raw` against its limits.
///
/// # Design
///
/// Like a [`BodyFormat`](super::BodyFormat) it is a constant of its crate, and both ends name it:
/// [`NativeSerializer::with_compression`](super::NativeSerializer::with_compression) and
/// [`ChunkDecoder::with_compression`](super::ChunkDecoder::with_compression).
pub trait BlockCompression: fmt::Debug + Sync {
    /// The number before each block, at least [`FIRST_ADDED_NUMBER`](super::FIRST_ADDED_NUMBER).
    /// Writers and readers agree on it.
    fn number(&self) -> u8;

    /// The name in tables and JSON.
    fn name(&self) -> &'static str;

    /// Appends the compressed block. The container stores the original if it is smaller.
    ///
    /// # Errors
    ///
    /// The compressor failed: [`EncodeError::Compression`].
    fn compress(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError>;

    /// Writes the original block to `raw`, which has its size. Returns how many bytes it wrote; the
    /// container refuses the chunk if there are fewer.
    ///
    /// # Errors
    ///
    /// The bytes are broken, or hold more than `raw`: [`DecodeErrorKind::Compression`].
    fn decompress(&self, stored: &[u8], raw: &mut [u8]) -> Result<usize, DecodeErrorKind>;
}
