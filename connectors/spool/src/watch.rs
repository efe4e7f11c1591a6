//! The status of a spool, readable while somebody else owns it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baler_common::transport::{SpoolStats, TransportError, Waiting};

/// Which way chunks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpoolRoute {
    /// Not open.
    #[default]
    Closed,
    /// Straight to the medium.
    Direct,
    /// The medium is away: to disk, once that lasts.
    Away,
    /// From disk to the medium, in order; new chunks go behind.
    Replaying,
}

impl SpoolRoute {
    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Direct => "direct",
            Self::Away => "away",
            Self::Replaying => "replaying",
        }
    }
}

/// The route of chunks, counts and errors of a spool.
///
/// `found` and `spooled` together are `replayed`, `refused`, `lost` and `waiting`, in chunks.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SpoolStatus {
    /// Which way chunks go.
    pub route: SpoolRoute,
    /// Spooled, replayed, waiting.
    pub stats: SpoolStats,
    /// Records that wait on disk.
    pub waiting_records: u64,
    /// Chunks that an earlier life left.
    pub found_chunks: u64,
    /// Records in them.
    pub found_records: u64,
    /// Chunks from disk that the medium refused for good; they are in the folder `refused`.
    pub refused_chunks: u64,
    /// Records in them.
    pub refused_records: u64,
    /// Chunks that were on disk and could not be read back: what the disk made of them is in
    /// `refused`, or in `damaged` of the chunks' folder.
    pub lost_chunks: u64,
    /// Records in them; known once nothing else is left.
    pub lost_records: u64,
    /// Damaged pieces found on disk.
    pub damaged_pieces: u64,
    /// How often the disk did not take a chunk: full, at the bound, forbidden.
    pub disk_failures: u64,
    /// The medium's last error, while it is away.
    pub medium_error: Option<Arc<TransportError>>,
    /// Since when the medium is away, or takes no chunk from disk.
    pub waiting: Waiting,
    /// The disk's last error, until it works again.
    pub disk_error: Option<Arc<TransportError>>,
}

/// Reads a spool's status while somebody else owns it. Cheap, from any thread.
#[derive(Debug, Clone, Default)]
pub struct SpoolWatch {
    status: Arc<Mutex<SpoolStatus>>,
}

impl SpoolWatch {
    /// The status now.
    pub fn status(&self) -> SpoolStatus {
        self.lock().clone()
    }

    pub(crate) fn stats(&self) -> SpoolStats {
        self.lock().stats
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut SpoolStatus)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, SpoolStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

pub(crate) fn take(count: &mut u64, less: u64) {
    *count = count.saturating_sub(less);
}
