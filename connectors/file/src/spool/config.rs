//! Settings, with their defaults and the reasons for them.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use baler_common::non_zero;
use baler_common::transport::RetryPolicy;

use crate::SyncPolicy;

/// Settings of a [`Spool`](crate::spool::Spool).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpoolConfig {
    /// The folder. It is made when it is needed, and belongs to one process at a time.
    pub folder: PathBuf,
    /// How long the medium may be away before chunks go to disk. Default 1 s: a reconnect to a live
    /// broker takes less, and the chunks of that time fit into the window.
    pub spool_after: Duration,
    /// How long the medium may confirm none of its chunks before it counts as away. Default 30 s: a
    /// slow consumer does not count as dead, and a half-open connection holds chunks for less time
    /// than under TCP's own timeout.
    pub stall_after: Duration,
    /// The most bytes that the chunks may take on disk, frames included. Default 1 GiB. At this
    /// limit the writer behaves as without a spool, until there is room again.
    pub max_bytes: NonZeroU64,
    /// When a chunk counts as spooled. Default [`SyncPolicy::Chunk`]: after it was forced to disk.
    /// All chunks that wait share one call, and a spooled chunk survives a crash of the machine.
    /// With [`SyncPolicy::None`] it survives only a crash of the process.
    pub sync: SyncPolicy,
    /// The size at which a segment is finished. Finished segments whose chunks were sent on are
    /// removed. Default 16 MiB: room comes back early, and there are few files.
    pub segment_bytes: NonZeroU64,
    /// How long the position in the spool may lag behind the confirmations of the medium. After a
    /// crash the chunks of that time are sent again. Default 1 s.
    pub commit_interval: Duration,
    /// The time limit of one attempt to open the medium. Default 2 s, as for an outbox.
    pub reopen_timeout: Duration,
    /// The pauses between attempts to open the medium, or the disk after an error. The limits of
    /// the policy are not used: the spool never gives up chunks on disk.
    pub retry: RetryPolicy,
}

impl SpoolConfig {
    /// Returns the defaults for this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let mut retry = RetryPolicy::default();
        // A medium that is back should soon get the chunks that wait; the aim is a p99 of five
        // seconds.
        retry.max_delay = Duration::from_secs(2);
        Self {
            folder: folder.into(),
            spool_after: Duration::from_secs(1),
            stall_after: Duration::from_secs(30),
            max_bytes: non_zero!(1 << 30),
            sync: SyncPolicy::default(),
            segment_bytes: non_zero!(16 << 20),
            commit_interval: Duration::from_secs(1),
            reopen_timeout: Duration::from_secs(2),
            retry,
        }
    }
}
