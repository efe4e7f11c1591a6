//! The settings of a controller, with their defaults and where these come from.

use std::time::Duration;

use baler_common::transport::{OutboxSettings, RetryPolicy};

use crate::queue::Overflow;

/// The smallest queue: four blocks that hold a few records each.
const MIN_QUEUE_BYTES: usize = 4 << 10;

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) chunk_records: usize,
    pub(super) chunk_bytes: usize,
    pub(super) max_chunk_bytes: usize,
    pub(super) wait_time: Duration,
    pub(super) queue_bytes: usize,
    pub(super) overflow: Overflow,
    pub(super) outbox: OutboxSettings,
    pub(super) metadata_record: bool,
    pub(super) enabled: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            chunk_records: 1_024,
            chunk_bytes: 256 << 10,
            max_chunk_bytes: 960 << 10,
            wait_time: Duration::from_millis(500),
            queue_bytes: 16 << 20,
            overflow: Overflow::default(),
            outbox: OutboxSettings::default(),
            metadata_record: true,
            enabled: true,
        }
    }
}

/// A setting cannot be, or the operating system has no thread left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting is too small.
    #[error("{setting} is {found}, but must be at least {least}")]
    TooSmall {
        /// The setting.
        setting: &'static str,
        /// What it was set to.
        found: usize,
        /// The smallest value.
        least: usize,
    },
    /// The threshold of a chunk is above its hard cap.
    #[error("chunk_bytes ({chunk_bytes}) is above max_chunk_bytes ({max_chunk_bytes})")]
    ThresholdAboveCap {
        /// The threshold.
        chunk_bytes: usize,
        /// The cap.
        max_chunk_bytes: usize,
    },
    /// The collector's thread could not be started.
    #[error("the collector's thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), StartError> {
        let RetryPolicy { max_attempts, .. } = self.outbox.retry;
        let attempts = max_attempts.map_or(1, |most| usize::try_from(most).unwrap_or(usize::MAX));
        for (setting, found, least) in [
            ("chunk_records", self.chunk_records, 1),
            ("chunk_bytes", self.chunk_bytes, 1),
            ("max_chunk_bytes", self.max_chunk_bytes, 1),
            ("queue_bytes", self.queue_bytes, MIN_QUEUE_BYTES),
            ("unconfirmed_chunks", self.outbox.max_chunks, 1),
            ("unconfirmed_bytes", self.outbox.max_bytes, 1),
            ("max_attempts", attempts, 1),
        ] {
            if found < least {
                return Err(StartError::TooSmall {
                    setting,
                    found,
                    least,
                });
            }
        }
        if self.chunk_bytes > self.max_chunk_bytes {
            return Err(StartError::ThresholdAboveCap {
                chunk_bytes: self.chunk_bytes,
                max_chunk_bytes: self.max_chunk_bytes,
            });
        }
        Ok(())
    }
}
