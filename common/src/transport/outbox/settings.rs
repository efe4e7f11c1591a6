//! The limits of an outbox, and its figures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::transport::{RetryPolicy, TransportError, Waiting, WriterStats};

/// The limits of an [`super::Outbox`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxSettings {
    /// The most unconfirmed chunks. Default 1,024, the window of Kafka's writer. With 64, a client
    /// that gathers messages for 5 ms takes at most 12,800 chunks a second, even small ones. The
    /// limit of bytes applies to large chunks.
    pub max_chunks: usize,
    /// The most unconfirmed bytes; one chunk is always accepted. Default 8 MiB.
    pub max_bytes: usize,
    /// The longest time that one attempt to reopen the writer may block. Default 2 s.
    pub reopen_timeout: Duration,
    /// How often and how long to retry.
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
    /// Not open, or not open any more; the outbox will try again.
    #[default]
    Closed,
    /// Given up: opening failed for a reason that a retry cannot cure.
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

/// The figures of an [`super::Outbox`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OutboxStats {
    /// The number of repeated offers.
    pub retries: u64,
    /// The number of times that the writer was opened again.
    pub reopened: u64,
    /// The number of times that the connection broke or could not be made.
    pub broken: u64,
    /// Chunks without a fate.
    pub unconfirmed_chunks: usize,
    /// Bytes of chunks without a fate.
    pub unconfirmed_bytes: usize,
    /// When the oldest chunk without a fate was pushed. It is a point in time and not an age, so
    /// that the age of a snapshot grows even while the medium hangs.
    pub oldest_unconfirmed: Option<Instant>,
    /// Chunks that the writer has taken but not confirmed.
    pub in_flight_chunks: usize,
    /// Bytes that the writer has taken but not confirmed.
    pub in_flight_bytes: usize,
    /// The connection's state.
    pub connection: Connection,
    /// The writer's figures of its medium.
    pub writer: WriterStats,
    /// The last error.
    pub last_error: Option<Arc<TransportError>>,
    /// Since when no chunk has moved although some wait, or since when the connection is away while
    /// none waits. Opening the writer again ends it only if no chunk waits.
    pub waiting: Waiting,
}

impl OutboxStats {
    /// Returns how long the oldest chunk without a fate has waited at this time; zero if there is
    /// none.
    pub fn oldest_unconfirmed_age(&self, now: Instant) -> Duration {
        self.oldest_unconfirmed
            .map_or(Duration::ZERO, |since| now.duration_since(since))
    }
}
