//! A chunk on its way.

use std::time::Instant;

use super::fate::{End, Fate};
use crate::transport::Chunk;

/// A chunk without a fate.
#[derive(Debug)]
pub(super) struct Entry {
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

impl Entry {
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
