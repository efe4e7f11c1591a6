//! A chunk in the outbox, and its fate.

use std::sync::Arc;
use std::time::Instant;

use crate::transport::{Chunk, Outcome, RetryClass, TransportError};

/// The fate of a chunk; each chunk has exactly one.
#[derive(Debug)]
pub struct Fate {
    /// The chunk.
    pub chunk: Chunk,
    /// Its end.
    pub end: End,
}

/// How a chunk ended.
#[derive(Debug)]
pub enum End {
    /// The medium has it, with the durability of its capability.
    Confirmed,
    /// The medium is away, and the writer stored it on local disk. The writer sends it on later.
    Spooled,
    /// The medium refused it permanently, or refused the connection.
    Refused(Arc<TransportError>),
    /// The medium never takes such a large chunk: split it.
    TooLarge {
        /// The largest chunk it takes, in bytes.
        max_chunk_bytes: usize,
    },
    /// Given up by the retry policy or at the end. It may have arrived without a confirmation.
    Undelivered(Option<Arc<TransportError>>),
}

impl End {
    /// Returns the end of a chunk that is not offered again after this outcome.
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
    /// How often the writer has taken it.
    pub(super) offers: u32,
    /// How often an offer of it, or opening the writer meanwhile, has failed.
    pub(super) failures: u32,
    /// The earliest time to offer it again after a refusal.
    pub(super) not_before: Option<Instant>,
}

impl Unconfirmed {
    /// Creates the entry of a chunk that was just pushed.
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

    /// Returns its fate.
    pub(super) fn end(self, end: End) -> Fate {
        Fate {
            chunk: self.chunk,
            end,
        }
    }
}
