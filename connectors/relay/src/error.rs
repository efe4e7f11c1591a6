//! Chunks that cannot be passed on, and why a relay cannot go on.

use std::io;
use std::sync::Arc;

use baler_common::transport::{ChunkMeta, Origin, TransportError};

/// Why a relay cannot go on. What is in flight is drained or given back by
/// [`Relay::close`](crate::Relay::close).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The source failed, and trying again cannot help.
    #[error("{0}")]
    Source(#[source] TransportError),
    /// The sink cannot be opened, and trying again cannot help.
    #[error("{0}")]
    Sink(#[source] Arc<TransportError>),
    /// A chunk could not be put aside; it was given back to the source.
    #[error("cannot put aside {origin} ({reason}): {source}")]
    Quarantine {
        /// Where the chunk was: endpoint, lane, position.
        origin: Box<str>,
        /// What is wrong with it.
        reason: Box<str>,
        /// Why it could not be kept.
        source: io::Error,
    },
}

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
