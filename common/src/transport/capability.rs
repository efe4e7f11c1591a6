//! What a medium can do, so that collectors respect its limits and tests choose their cases.

use std::num::NonZeroUsize;

/// What a writer's medium can do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capability {
    /// The medium's name, as in its URI's scheme.
    pub medium: &'static str,
    /// The largest chunk the medium takes, in bytes.
    pub max_chunk_bytes: NonZeroUsize,
    /// How many chunks may be offered and not yet confirmed.
    pub window_chunks: NonZeroUsize,
    /// How many bytes may be offered and not yet confirmed. A single chunk up to
    /// `max_chunk_bytes` is taken even if it alone exceeds this.
    pub window_bytes: NonZeroUsize,
    /// The order in which a reader gets the chunks of one lane.
    pub order: Order,
    /// What a confirmation means.
    pub durability: Durability,
    /// Whether what was written can be read again by a reader of the same crate.
    pub readable: bool,
}

impl Capability {
    /// A medium with ample limits: 16 MiB chunks, 64 chunks and 64 MiB in flight.
    pub fn new(medium: &'static str, order: Order, durability: Durability) -> Self {
        let nonzero = |value: usize| NonZeroUsize::new(value).unwrap_or(NonZeroUsize::MIN);
        Self {
            medium,
            max_chunk_bytes: nonzero(16 << 20),
            window_chunks: nonzero(64),
            window_bytes: nonzero(64 << 20),
            order,
            durability,
            readable: true,
        }
    }
}

/// The order in which a reader gets the chunks of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they were offered; a chunk sent again may appear again later.
    PerLane,
    /// None is promised.
    Unordered,
}

/// What a confirmation means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: the chunk is discarded or merely handed to the operating system.
    None,
    /// Another process has the chunk in memory, or has processed it.
    Received,
    /// The chunk survives a crash of the process that holds it, not of the machine.
    Process,
    /// The chunk was forced to stable storage.
    Disk,
    /// A quorum of nodes has the chunk.
    Replicated,
}
