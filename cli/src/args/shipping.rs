//! How records become chunks: flags of the commands that send.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use baler_common::container::Compression;
use clap::{Args, ValueEnum};

use super::values;

/// How records become chunks and what happens when they cannot leave.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Chunks")]
pub(crate) struct ShippingArgs {
    /// The container
    #[arg(long, value_enum, default_value = "native", env = "BALER_CONTAINER")]
    pub(crate) container: ContainerChoice,
    /// How native chunks are compressed: none, lz4, zstd, zstd:1 to zstd:22, or auto: what pays for
    /// it by zstd:1
    #[arg(
        long,
        value_name = "NAME",
        default_value = "none",
        env = "BALER_COMPRESSION",
        value_parser = values::compression
    )]
    pub(crate) compression: Compression,
    /// A dictionary to compress with (`zstd --train`), with --compression zstd: readers need it too
    #[arg(long, value_name = "FILE", env = "BALER_DICTIONARY")]
    pub(crate) dictionary: Option<PathBuf>,
    /// A chunk closes at so many records; auto: at as many, and as late, as costs least at the rate
    /// of the moment within --max-latency
    #[arg(
        long,
        value_name = "N|auto",
        env = "BALER_CHUNK_RECORDS",
        value_parser = values::chunk_records
    )]
    pub(crate) chunk_records: Option<ChunkRecords>,
    /// With --chunk-records auto: how long a record may take from being emitted to being confirmed
    /// [default: 500ms]
    #[arg(
        long,
        value_name = "DURATION",
        env = "BALER_MAX_LATENCY",
        value_parser = values::duration
    )]
    pub(crate) max_latency: Option<Duration>,
    /// A chunk closes at so many encoded bytes
    #[arg(long, value_name = "SIZE", env = "BALER_CHUNK_BYTES", value_parser = values::size)]
    pub(crate) chunk_bytes: Option<NonZeroUsize>,
    /// A chunk closes when its oldest record has waited so long [default: 500ms, with --chunk-records
    /// auto what --max-latency leaves]
    #[arg(long, value_name = "DURATION", env = "BALER_WAIT_TIME", value_parser = values::duration)]
    pub(crate) wait_time: Option<Duration>,
    /// What happens to a record when the queue is full
    #[arg(long, value_enum, default_value = "block", env = "BALER_OVERFLOW")]
    pub(crate) overflow: OverflowChoice,
    /// How long `--overflow block-with-timeout` blocks
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "1s",
        env = "BALER_BLOCK_TIMEOUT",
        value_parser = values::duration
    )]
    pub(crate) block_timeout: Duration,
    /// The largest chunk; one above it is split. A smaller limit of the medium counts
    #[arg(long, value_name = "SIZE", env = "BALER_MAX_CHUNK_BYTES", value_parser = values::size)]
    pub(crate) max_chunk_bytes: Option<NonZeroUsize>,
    /// Deal the records to so many lanes by their trace; with partition_by=trace a Kafka topic
    /// gives each lane a partition
    #[arg(long, value_name = "N", env = "BALER_LANES")]
    pub(crate) lanes: Option<NonZeroUsize>,
    /// Create the Kafka topic of the URI if there is none: how many partitions, and on how many
    /// brokers each of them is
    #[arg(
        long,
        value_name = "PARTITIONS,REPLICATION",
        env = "BALER_CREATE_TOPIC"
    )]
    pub(crate) create_topic: Option<String>,
    /// One budget for queues, batches, and chunks in flight and to be tried again
    #[arg(long, value_name = "SIZE", env = "BALER_MEMORY", value_parser = values::size)]
    pub(crate) memory: Option<NonZeroUsize>,
    /// Memory for the queues of all threads
    #[arg(long, value_name = "SIZE", env = "BALER_QUEUE_BYTES", value_parser = values::size)]
    pub(crate) queue_bytes: Option<NonZeroUsize>,
    /// Give up, with code 69, when records wait and none moved for so long, whether the medium can be
    /// reached or not
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "30s",
        env = "BALER_GIVE_UP",
        value_parser = values::duration
    )]
    pub(crate) give_up: Duration,
    /// Drop a chunk that is not confirmed for so long, and count its records as undelivered; without
    /// it, chunks are tried again for ever
    #[arg(
        long,
        value_name = "DURATION",
        env = "BALER_RETRY_MAX_ELAPSED",
        value_parser = values::duration
    )]
    pub(crate) retry_max_elapsed: Option<Duration>,
    /// Drop a chunk after so many failed attempts
    #[arg(long, value_name = "N", env = "BALER_RETRY_MAX_ATTEMPTS")]
    pub(crate) retry_max_attempts: Option<NonZeroU32>,
    /// The longest pause between attempts to reach the medium; each is drawn evenly from 0 to a
    /// doubling bound
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "2s",
        env = "BALER_RETRY_MAX_DELAY",
        value_parser = values::duration
    )]
    pub(crate) retry_max_delay: Duration,
}

/// How many records a chunk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkRecords {
    /// As many as the collector chooses.
    Auto,
    /// So many.
    Fixed(NonZeroUsize),
}

impl fmt::Display for ChunkRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Fixed(records) => records.fmt(f),
        }
    }
}

/// The bound of the latency where none is given.
const MAX_LATENCY: Duration = Duration::from_millis(500);

impl ShippingArgs {
    /// The bound of the latency, where the collector chooses the size of chunks.
    ///
    /// # Errors
    ///
    /// A bound is given, and a fixed size or none.
    pub(crate) fn auto_latency(&self) -> Result<Option<Duration>, String> {
        match (self.chunk_records, self.max_latency) {
            (Some(ChunkRecords::Auto), bound) => Ok(Some(bound.unwrap_or(MAX_LATENCY))),
            (_, None) => Ok(None),
            (size, Some(bound)) => {
                let size = size.map_or_else(|| "not set".to_owned(), |size| size.to_string());
                Err(format!(
                    "max_latency ({bound:?}) goes with chunk_records = auto, which is {size}; a \
                     fixed size has wait_time"
                ))
            }
        }
    }
}

/// A container by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContainerChoice {
    /// Kieker's KIKA/DFLT: no checksum, schema or compression
    Kieker,
    /// Baler's own
    Native,
}

/// An overflow policy by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverflowChoice {
    /// The thread that emits waits until there is room
    Block,
    /// It waits for a while, then the record is dropped
    BlockWithTimeout,
    /// The record is dropped
    DropNewest,
    /// The oldest records in the queue are dropped
    DropOldest,
}
