//! How far a chunk reaches, for files that hold chunks with nothing around them.

use super::{kieker, native};

/// How far a chunk reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkExtent {
    /// This many bytes: a native chunk says so in its prefix.
    Bytes(u64),
    /// To the end of what holds it: Kieker's container does not say.
    ToEnd,
}

impl ChunkExtent {
    /// How many bytes of a chunk are needed to tell.
    pub const NEEDED_BYTES: usize = native::PREFIX_BYTES;

    /// The first bytes of a native chunk: what to look for behind damage.
    pub const NATIVE_MAGIC: [u8; 4] = native::MAGIC;

    /// How far the chunk reaches that begins with these bytes; none if no chunk does, or the
    /// checksum of its prefix does not match.
    pub fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(&kieker::MAGIC) {
            return Some(Self::ToEnd);
        }
        native::declared_bytes(start).map(|bytes| Self::Bytes(bytes.into()))
    }
}

#[cfg(test)]
mod tests;
