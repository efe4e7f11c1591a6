//! What became of a chunk.

use std::sync::Arc;

use crate::transport::{Chunk, RetryClass, TransportError};

/// What became of a chunk; each chunk has exactly one.
#[derive(Debug)]
pub struct Fate {
    /// The chunk.
    pub chunk: Chunk,
    /// What became of it.
    pub end: End,
}

/// What became of a chunk.
#[derive(Debug)]
pub enum End {
    /// The medium has it, as durably as its capability says.
    Confirmed,
    /// The writer put it on local disk, since the medium is away; it sends it on later.
    Spooled,
    /// The medium refused it for good, or the connection to it.
    Refused(Arc<TransportError>),
    /// The medium never takes so large a chunk: split it.
    TooLarge {
        /// The largest chunk it takes, in bytes.
        max_chunk_bytes: usize,
    },
    /// Given up by the retry policy or at the end. It may have arrived nevertheless, unconfirmed.
    Undelivered(Option<Arc<TransportError>>),
}

impl End {
    /// How a refusal that is not worth another attempt ends.
    pub(super) fn of_refusal(error: TransportError) -> Self {
        match error.class {
            RetryClass::Final => Self::Refused(Arc::new(error)),
            RetryClass::Exhausted | RetryClass::Retry => Self::Undelivered(Some(Arc::new(error))),
        }
    }
}
