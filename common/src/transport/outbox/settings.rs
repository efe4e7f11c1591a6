//! Bounds and patience of an outbox.

use std::time::Duration;

use crate::transport::RetryPolicy;

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
