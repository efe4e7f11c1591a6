//! The settings of a controller, with their defaults and the reasons for these.

use std::time::Duration;

use baler_common::number::to_usize;
use baler_common::record::RecordBatch;
use baler_common::transport::{OutboxSettings, RetryPolicy};

use crate::collector::Tuning;
use crate::queue::Overflow;

/// The smallest queue: four blocks that hold a few records each.
const MIN_QUEUE_BYTES: usize = 4 << 10;

/// The settings of a controller and its collector.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) chunk_records: usize,
    pub(crate) chunk_bytes: usize,
    /// The limit of the latency, if the collector chooses the size.
    pub(crate) max_latency: Option<Duration>,
    pub(crate) lanes: usize,
    pub(crate) max_chunk_bytes: usize,
    pub(crate) wait_time: Option<Duration>,
    pub(crate) aggregation_interval: Duration,
    /// Limits everything below. Limits of the queues and the outbox that are not set follow from
    /// it.
    pub(crate) memory: Option<usize>,
    pub(crate) queue_bytes: Option<usize>,
    pub(crate) unconfirmed_bytes: Option<usize>,
    pub(crate) overflow: Overflow,
    pub(crate) outbox: OutboxSettings,
    pub(crate) metadata_record: bool,
    pub(crate) enabled: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            chunk_records: 1_024,
            chunk_bytes: 256 << 10,
            max_latency: None,
            lanes: 1,
            max_chunk_bytes: 960 << 10,
            wait_time: None,
            aggregation_interval: Duration::from_secs(1),
            memory: None,
            queue_bytes: None,
            unconfirmed_bytes: None,
            overflow: Overflow::default(),
            outbox: OutboxSettings::default(),
            metadata_record: true,
            enabled: true,
        }
    }
}

/// The wait time by default: see [`super::ControllerBuilder::wait_time`].
pub(crate) const WAIT_TIME: Duration = Duration::from_millis(500);

/// The bytes of queues without a budget: see [`super::ControllerBuilder::queue_bytes`].
const QUEUE_BYTES: usize = 16 << 20;

/// The most lanes; each has a batch of its own.
const MAX_LANES: usize = 4_096;

/// The memory of monitoring, split into its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Division {
    pub(super) queue_bytes: usize,
    pub(super) unconfirmed_bytes: usize,
}

/// Which batches become chunks as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WholeBatches {
    chunk_records: usize,
    chunk_bytes: usize,
}

impl WholeBatches {
    /// Whether a batch is about a chunk. The estimate of its bytes is an upper one.
    pub(super) fn is_chunk(self, batch: &RecordBatch) -> bool {
        let (records, bytes) = (batch.len(), batch.estimated_bytes());
        records <= self.chunk_records
            && bytes <= self.chunk_bytes.saturating_mul(2)
            && (records >= self.chunk_records / 2 || bytes >= self.chunk_bytes)
    }
}

/// A setting is not possible, or the operating system cannot start another thread.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting is too small.
    #[error("{setting} is {found}, but must be at least {least}")]
    TooSmall {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: usize,
        /// The smallest value.
        least: usize,
    },
    /// A setting is too large.
    #[error("{setting} is {found}, but must be at most {most}")]
    TooLarge {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: usize,
        /// The largest value.
        most: usize,
    },
    /// The parts do not fit into the memory budget.
    #[error(
        "memory ({memory}) is less than queue_bytes ({queue_bytes}), unconfirmed_bytes \
         ({unconfirmed_bytes}) and the batches of {lanes} lanes ({batch_bytes}) together"
    )]
    OverBudget {
        /// The budget.
        memory: usize,
        /// The queues' part.
        queue_bytes: usize,
        /// The part of chunks in flight and in retry.
        unconfirmed_bytes: usize,
        /// The number of lanes, each with a batch.
        lanes: usize,
        /// The part of the batches and a chunk being made.
        batch_bytes: usize,
    },
    /// The threshold of a chunk is above its hard cap.
    #[error("chunk_bytes ({chunk_bytes}) is above max_chunk_bytes ({max_chunk_bytes})")]
    ThresholdAboveCap {
        /// The threshold.
        chunk_bytes: usize,
        /// The cap.
        max_chunk_bytes: usize,
    },
    /// Samplers are only available on Linux.
    #[error("samplers work on Linux only")]
    SamplersNeedLinux,
    /// The samplers' thread could not be started.
    #[error("the samplers' thread cannot be started: {0}")]
    SamplerThread(#[source] std::io::Error),
    /// The collector's thread could not be started.
    #[error("the collector's thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

impl Settings {
    /// Checks everything, and divides the memory.
    pub(super) fn check(&self) -> Result<Division, StartError> {
        let division = self.divide()?;
        let RetryPolicy { max_attempts, .. } = self.outbox.retry;
        let attempts = max_attempts.map_or(1, to_usize);
        // More than one millisecond need not be told.
        let max_latency = self.max_latency.map_or(1, |most| most.as_millis());
        let max_latency_ms = usize::from(max_latency >= 1);
        for (setting, found, least) in [
            ("chunk_records", self.chunk_records, 1),
            ("max_latency in milliseconds", max_latency_ms, 1),
            ("chunk_bytes", self.chunk_bytes, 1),
            ("lanes", self.lanes, 1),
            ("max_chunk_bytes", self.max_chunk_bytes, 1),
            ("queue_bytes", division.queue_bytes, MIN_QUEUE_BYTES),
            ("unconfirmed_chunks", self.outbox.max_chunks, 1),
            ("unconfirmed_bytes", division.unconfirmed_bytes, 1),
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
        if self.lanes > MAX_LANES {
            return Err(StartError::TooLarge {
                setting: "lanes",
                found: self.lanes,
                most: MAX_LANES,
            });
        }
        Ok(division)
    }

    /// Returns the limits of the collector's choice, if it chooses.
    /// Returns which batches become chunks as they are, if any.
    pub(super) fn whole_batches(&self) -> Option<WholeBatches> {
        let is_possible = self.lanes <= 1
            && self.max_latency.is_none()
            && self.memory.is_none()
            && self.overflow == Overflow::Block;
        is_possible.then_some(WholeBatches {
            chunk_records: self.chunk_records,
            chunk_bytes: self.chunk_bytes,
        })
    }

    pub(super) fn tuning(&self, division: &Division) -> Option<Tuning> {
        self.max_latency.map(|max_latency| Tuning {
            max_latency,
            max_wait: self.wait_time,
            chunk_bytes: self.chunk_bytes,
            queue_bytes: division.queue_bytes,
        })
    }

    /// Half of a budget is for the queues, which take the application's records at once. The rest,
    /// less the batches being filled, is for chunks, which are smaller than their rows.
    fn divide(&self) -> Result<Division, StartError> {
        let Some(memory) = self.memory else {
            return Ok(Division {
                queue_bytes: self.queue_bytes.unwrap_or(QUEUE_BYTES),
                unconfirmed_bytes: self.unconfirmed_bytes.unwrap_or(self.outbox.max_bytes),
            });
        };
        // Rows may be larger than their chunk, and a chunk being made exists beside its batch.
        let batch_bytes = self
            .chunk_bytes
            .saturating_mul(2)
            .saturating_mul(self.lanes)
            .saturating_add(self.max_chunk_bytes);
        let queue_bytes = self.queue_bytes.unwrap_or(memory / 2);
        let left = memory.saturating_sub(queue_bytes.saturating_add(batch_bytes));
        let unconfirmed_bytes = self.unconfirmed_bytes.unwrap_or(left);
        if unconfirmed_bytes > left || left < self.max_chunk_bytes {
            return Err(StartError::OverBudget {
                memory,
                queue_bytes,
                unconfirmed_bytes: unconfirmed_bytes.max(self.max_chunk_bytes),
                lanes: self.lanes,
                batch_bytes,
            });
        }
        Ok(Division {
            queue_bytes,
            unconfirmed_bytes,
        })
    }
}
