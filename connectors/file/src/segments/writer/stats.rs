//! The counts of a writer.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts since the writer was created, over all its reopenings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterStats {
    /// The number of times that data was forced to stable storage.
    pub syncs: u64,
    /// Pieces of torn or foreign bytes that recovery moved to `damaged/`.
    pub damaged_pieces: u64,
    /// The bytes of these pieces.
    pub damaged_bytes: u64,
    /// Pieces that could not be moved. They stay in place, and readers report them.
    pub unmoved_pieces: u64,
    /// Segments that could not be read when the folder was opened.
    pub unreadable_segments: u64,
    /// Segments removed because the folder was full.
    pub dropped_segments: u64,
    /// The chunks in these segments, by their numbers.
    pub dropped_chunks: u64,
    /// The bytes in these segments.
    pub dropped_bytes: u64,
    /// The number after the last chunk that is written, and durable if the settings ask for that.
    pub next_chunk: u64,
    /// The free bytes that the last refused chunk needs. A full folder is opened again once it has
    /// them.
    pub wanted_bytes: u64,
}

pub(super) fn lock_stats(stats: &Mutex<WriterStats>) -> MutexGuard<'_, WriterStats> {
    stats.lock().unwrap_or_else(PoisonError::into_inner)
}
