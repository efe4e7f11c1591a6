//! Bounds and patience of a relay.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

use baler_common::transport::{OutboxSettings, RetryPolicy};

/// Bounds and patience of a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelaySettings {
    /// How many chunks may be received and not settled. Default 1,024.
    pub max_chunks: usize,
    /// How many bytes may be received and not settled; one chunk is always taken.
    /// Default 64 MiB.
    pub max_bytes: usize,
    /// How long one attempt to open the sink may block. Default 2 s.
    pub reopen_timeout: Duration,
    /// How often and how long to try again. By default without limit: what the sink does not take
    /// stays with the source. The seed differs from process to process.
    pub retry: RetryPolicy,
}

impl Default for RelaySettings {
    fn default() -> Self {
        let outbox = OutboxSettings::default();
        let mut retry = outbox.retry;
        // The keys of a hasher are the standard library's only random numbers.
        retry.seed = RandomState::new().hash_one("retry");
        Self {
            max_chunks: 1_024,
            max_bytes: 64 << 20,
            reopen_timeout: outbox.reopen_timeout,
            retry,
        }
    }
}

impl RelaySettings {
    /// The part that the outbox needs.
    pub(crate) fn outbox(&self) -> OutboxSettings {
        let mut settings = OutboxSettings::default();
        settings.max_chunks = self.max_chunks.max(1);
        settings.max_bytes = self.max_bytes.max(1);
        settings.reopen_timeout = self.reopen_timeout;
        settings.retry = self.retry.clone();
        settings
    }
}
