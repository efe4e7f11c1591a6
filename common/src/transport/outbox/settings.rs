//! What an outbox may hold, and what it holds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::transport::{RetryPolicy, TransportError, Waiting, WriterStats};

/// Bounds and patience of an [`super::Outbox`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxSettings {
    /// How many chunks may be unconfirmed. Default 1,024, the window of Kafka's writer: with 64 a
    /// client that gathers messages for 5 ms takes no more than 12,800 chunks a second, however
    /// small they are. Large chunks are bounded by their bytes.
    pub max_chunks: usize,
    /// How many bytes may be unconfirmed; one chunk is always taken. Default 8 MiB.
    pub max_bytes: usize,
    /// How long one attempt to reopen the writer may block. Default 2 s.
    pub reopen_timeout: Duration,
    /// How often and how long to try again.
    pub retry: RetryPolicy,
}

impl Default for OutboxSettings {
    fn default() -> Self {
        Self {
            max_chunks: 1_024,
            max_bytes: 8 << 20,
            reopen_timeout: Duration::from_secs(2),
            retry: RetryPolicy::default(),
        }
    }
}

/// The state of a writer's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Connection {
    /// Not open, or no longer; it will be tried again.
    #[default]
    Closed,
    /// Given up: opening failed for a reason that trying again cannot cure.
    Failed,
    /// Open.
    Open,
}

impl Connection {
    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Failed => "failed",
            Self::Open => "open",
        }
    }
}

/// What an [`super::Outbox`] has done and holds.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OutboxStats {
    /// How often a chunk was offered once more.
    pub retries: u64,
    /// How often the writer was opened again after the first time.
    pub reopened: u64,
    /// How often the connection broke, or could not be made.
    pub broken: u64,
    /// Chunks without a fate.
    pub unconfirmed_chunks: usize,
    /// Bytes of chunks without a fate.
    pub unconfirmed_bytes: usize,
    /// When the oldest chunk without a fate was pushed. A point in time rather than an age, so that
    /// a snapshot of a medium that hangs goes on ageing.
    pub oldest_unconfirmed: Option<Instant>,
    /// Chunks that the writer has taken and not confirmed.
    pub in_flight_chunks: usize,
    /// Bytes that the writer has taken and not confirmed.
    pub in_flight_bytes: usize,
    /// The connection's state.
    pub connection: Connection,
    /// What the writer says of its medium.
    pub writer: WriterStats,
    /// What went wrong last.
    pub last_error: Option<Arc<TransportError>>,
    /// Since when no chunk moved although some wait, or the connection is away while none does.
    /// Opening the writer again ends it only where no chunk waits.
    pub waiting: Waiting,
}

impl OutboxStats {
    /// How long the oldest chunk without a fate has waited at this point in time; zero when there
    /// is none.
    pub fn oldest_unconfirmed_age(&self, now: Instant) -> Duration {
        self.oldest_unconfirmed
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}
