//! Chunks that cannot be passed on.

use std::io;

use baler_common::transport::{ChunkMeta, Origin};

/// A chunk, or bytes in its place, that cannot be passed on.
#[derive(Debug, Clone, Copy)]
pub struct Unfit<'a> {
    /// The bytes as they were received.
    pub bytes: &'a [u8],
    /// Where they were.
    pub origin: &'a Origin,
    /// Who the chunk is and what it holds, if that is known.
    pub meta: Option<ChunkMeta>,
    /// Whose verdict it is.
    pub cause: Cause,
    /// What is wrong, in words.
    pub reason: &'a str,
}

/// Whose verdict it is that a chunk cannot be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The source could tell that the bytes are no chunk; it has them out of the way already.
    Damaged,
    /// The source carried no identity beside the bytes, and they are no container.
    Foreign,
    /// The sink refused this chunk for good.
    Refused,
    /// The sink never takes so large a chunk.
    TooLarge,
}

impl Cause {
    /// Whether the bytes were a chunk that only this sink does not take.
    pub const fn is_a_chunk(self) -> bool {
        matches!(self, Self::Refused | Self::TooLarge)
    }
}

/// Keeps what cannot be passed on; it must be safe when this returns.
pub(crate) type PutAside = Box<dyn FnMut(Unfit<'_>) -> io::Result<()> + Send>;

/// What a relay without a quarantine does: it discards what never was a chunk. A chunk that the
/// sink refuses stays at the source, and the relay ends.
///
/// # Errors
///
/// The bytes are a chunk, which would be lost.
pub fn without_quarantine(unfit: Unfit<'_>) -> io::Result<()> {
    if unfit.cause.is_a_chunk() {
        return Err(io::Error::other(
            "there is no quarantine, and it would be lost without one",
        ));
    }
    Ok(())
}
