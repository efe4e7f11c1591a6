//! Settings, with their defaults and the reasons for them.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use baler_common::transport::RetryPolicy;
use baler_connector_file::SyncPolicy;

/// Settings of a [`Spool`](crate::Spool).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpoolConfig {
    /// The folder. It is made when it is needed, and belongs to one process at a time.
    pub folder: PathBuf,
    /// How long the medium may be away before chunks go to disk. Default 1 s: a reconnect to a
    /// broker that lives takes less, and what waits meanwhile fits into the window.
    pub spool_after: Duration,
    /// How long the medium may confirm nothing of what it has before it counts as away. Default
    /// 30 s: a slow consumer is not mistaken for a dead one, and a half-open connection does not
    /// hold chunks for as long as TCP would.
    pub stall_after: Duration,
    /// The most that the chunks may take on disk, frames included. Default 1 GiB. At the bound, the
    /// spool behaves as if there were none, until room returns.
    pub max_bytes: NonZeroU64,
    /// Whether a chunk is forced to disk before it counts as spooled. Default
    /// [`SyncPolicy::Chunk`]: all that wait share one call, and a spooled chunk survives a crash of
    /// the machine. With [`SyncPolicy::None`] it survives one of the process.
    pub sync: SyncPolicy,
    /// A segment that would become larger is finished; finished segments that were sent on are
    /// removed. Default 16 MiB: room comes back early, and there are few files.
    pub segment_bytes: NonZeroU64,
    /// How far the position in the spool may lag behind what the medium confirmed; after a crash
    /// that much is sent again. Default 1 s.
    pub commit_interval: Duration,
    /// How long one attempt to open the medium may take. Default 2 s, as that of an outbox.
    pub reopen_timeout: Duration,
    /// The pauses between attempts to open the medium, or the disk after an error. Its limits are
    /// not used: chunks on disk are never given up.
    pub retry: RetryPolicy,
}

impl SpoolConfig {
    /// The defaults, for this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let mut retry = RetryPolicy::default();
        // A medium that is back should see what waits soon; p99 of five seconds is the aim.
        retry.max_delay = Duration::from_secs(2);
        Self {
            folder: folder.into(),
            spool_after: Duration::from_secs(1),
            stall_after: Duration::from_secs(30),
            max_bytes: NonZeroU64::MIN.saturating_add((1 << 30) - 1),
            sync: SyncPolicy::default(),
            segment_bytes: NonZeroU64::MIN.saturating_add((16 << 20) - 1),
            commit_interval: Duration::from_secs(1),
            reopen_timeout: Duration::from_secs(2),
            retry,
        }
    }
}

/// The pauses between attempts at something that fails.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    /// Attempts in a row that failed.
    failures: u32,
    draws: u64,
}

impl Backoff {
    /// Counts a failure; returns the pause before the next attempt.
    pub(crate) fn pause(&mut self, policy: &RetryPolicy) -> Duration {
        self.draws = self.draws.wrapping_add(1);
        let pause = policy.delay(self.failures, self.draws);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// An attempt succeeded.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}
