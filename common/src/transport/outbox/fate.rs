//! A chunk in the outbox, and what becomes of it.

use std::sync::Arc;
use std::time::Instant;

use crate::transport::{Chunk, Outcome, RetryClass, TransportError};

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
    /// The end of a chunk with this outcome, which is not worth another attempt.
    pub(super) fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Confirmed => Self::Confirmed,
            Outcome::Spooled => Self::Spooled,
            Outcome::Refused(error) => match error.class {
                RetryClass::Final => Self::Refused(Arc::new(error)),
                RetryClass::Exhausted | RetryClass::Retry => {
                    Self::Undelivered(Some(Arc::new(error)))
                }
            },
        }
    }
}

/// A chunk without a fate.
#[derive(Debug)]
pub(super) struct Unconfirmed {
    pub(super) chunk: Chunk,
    /// When it was pushed.
    pub(super) since: Instant,
    /// Whether the writer has it now.
    pub(super) offered: bool,
    /// How often the writer took it.
    pub(super) offers: u32,
    /// How often that, or opening the writer meanwhile, failed.
    pub(super) failures: u32,
    /// When it may be offered again after a refusal.
    pub(super) not_before: Option<Instant>,
}

impl Unconfirmed {
    /// A chunk that was pushed just now.
    pub(super) fn new(chunk: Chunk, now: Instant) -> Self {
        Self {
            chunk,
            since: now,
            offered: false,
            offers: 0,
            failures: 0,
            not_before: None,
        }
    }

    /// Its fate.
    pub(super) fn end(self, end: End) -> Fate {
        Fate {
            chunk: self.chunk,
            end,
        }
    }
}
