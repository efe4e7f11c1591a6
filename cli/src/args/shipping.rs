//! How records become chunks: flags of the commands that send.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use baler_common::container::Compression;
use baler_connector_file::lines::{JSON_SCHEME, TEXT_SCHEME};
use clap::{Args, FromArgMatches as _, ValueEnum};

use super::check;
use super::values::{chunk_records, duration, size};
use crate::exit::Failure;

/// How records become chunks and what happens when they cannot leave.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Chunks")]
pub(crate) struct ShippingArgs {
    /// The format of chunks
    #[arg(long, value_enum, default_value = "native", env = "BALER_CONTAINER")]
    pub(crate) container: ContainerChoice,
    /// How native chunks are compressed: none, lz4, zstd, or zstd:1 to zstd:22 [default: none; zstd:1
    /// for lines of jsonl: and text:]
    #[arg(long, value_name = "NAME", env = "BALER_COMPRESSION")]
    pub(crate) compression: Option<Compression>,
    /// A dictionary made by `zstd --train`, for --compression zstd; readers need it in --dictionaries
    #[arg(long, value_name = "FILE", env = "BALER_DICTIONARY")]
    pub(crate) dictionary: Option<PathBuf>,
    /// Close a chunk at this many records; with auto, the size that costs least CPU at the present
    /// rate and keeps --max-latency [default: 1024]
    #[arg(long, value_name = "N|auto", env = "BALER_CHUNK_RECORDS", value_parser = chunk_records)]
    pub(crate) chunk_records: Option<ChunkRecords>,
    /// With --chunk-records auto: how long it may take from emitting a record to its confirmation
    /// [default: 500ms]
    #[arg(long, value_name = "DURATION", env = "BALER_MAX_LATENCY", value_parser = duration)]
    pub(crate) max_latency: Option<Duration>,
    /// Close a chunk at this many encoded bytes [default: 256KiB]
    #[arg(long, value_name = "SIZE", env = "BALER_CHUNK_BYTES", value_parser = size)]
    pub(crate) chunk_bytes: Option<NonZeroUsize>,
    /// Close a chunk when its oldest record has waited this long [default: 500ms; with --chunk-records
    /// auto, most of --max-latency]
    #[arg(long, value_name = "DURATION", env = "BALER_WAIT_TIME", value_parser = duration)]
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
        value_parser = duration
    )]
    pub(crate) block_timeout: Duration,
    /// The largest chunk: a larger one is split. If the medium has a smaller limit, that one counts
    /// [default: 960KiB]
    #[arg(long, value_name = "SIZE", env = "BALER_MAX_CHUNK_BYTES", value_parser = size)]
    pub(crate) max_chunk_bytes: Option<NonZeroUsize>,
    /// Distribute the records over this many lanes by their trace; with partition_by=trace, a Kafka
    /// topic gives each lane a partition [default: 1]
    #[arg(long, value_name = "N", env = "BALER_LANES")]
    pub(crate) lanes: Option<NonZeroUsize>,
    /// Memory for queues, batches and unconfirmed chunks together [default: each has a limit of its
    /// own]
    #[arg(long, value_name = "SIZE", env = "BALER_MEMORY", value_parser = size)]
    pub(crate) memory: Option<NonZeroUsize>,
    /// Memory for the queues of all threads [default: 16MiB; with --memory, half of it]
    #[arg(long, value_name = "SIZE", env = "BALER_QUEUE_BYTES", value_parser = size)]
    pub(crate) queue_bytes: Option<NonZeroUsize>,
    /// Give up, with code 69, when records wait and none has moved for this long, whether the medium
    /// can be reached or not
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "30s",
        env = "BALER_GIVE_UP",
        value_parser = duration
    )]
    pub(crate) give_up: Duration,
    /// Drop a chunk that is unconfirmed for this long, and count its records as undelivered [default:
    /// try again without limit]
    #[arg(long, value_name = "DURATION", env = "BALER_RETRY_MAX_ELAPSED", value_parser = duration)]
    pub(crate) retry_max_elapsed: Option<Duration>,
    /// Drop a chunk after this many failed attempts [default: try again without limit]
    #[arg(long, value_name = "N", env = "BALER_RETRY_MAX_ATTEMPTS")]
    pub(crate) retry_max_attempts: Option<NonZeroU32>,
    /// The longest pause between attempts to reach the medium; pauses are random, and their bound
    /// doubles up to this one
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "2s",
        env = "BALER_RETRY_MAX_DELAY",
        value_parser = duration
    )]
    pub(crate) retry_max_delay: Duration,
}

/// The number of records in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkRecords {
    /// As many as the collector chooses.
    Auto,
    /// This number.
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

/// The default bound of the latency.
const MAX_LATENCY: Duration = Duration::from_millis(500);

impl ShippingArgs {
    /// Returns the values for a command without these flags: of the environment, or the defaults.
    ///
    /// # Errors
    ///
    /// A value of the environment is wrong.
    pub(crate) fn without_flags() -> Result<Self, Failure> {
        let command = Self::augment_args(clap::Command::new("baler")).no_binary_name(true);
        let matches = command.try_get_matches_from([""; 0]);
        let args = matches.and_then(|matches| Self::from_arg_matches(&matches));
        args.map_err(|error| check::wrong_command_line(&error))
    }

    /// Returns the flags for the records of this source. Lines are texts, which zstd:1 halves; it
    /// takes 7 % off other records at most (`docs/tuning.md`).
    pub(crate) fn of_source(&self, from: &str) -> Self {
        let mut args = self.clone();
        let scheme = from.split_once(':').map(|(scheme, _)| scheme);
        let is_lines = [JSON_SCHEME, TEXT_SCHEME].map(Some).contains(&scheme);
        if is_lines && args.container == ContainerChoice::Native {
            let compression = Compression::Zstd { level: 1 };
            args.compression.get_or_insert(compression);
        }
        args
    }

    /// Returns the bound of the latency if the collector chooses the size of chunks.
    ///
    /// # Errors
    ///
    /// A bound is given, with a fixed size or none.
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
    /// Kieker's KIKA/DFLT, without checksum, schema or compression
    Kieker,
    /// Baler's own format
    Native,
}

/// An overflow policy by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverflowChoice {
    /// The emitting thread waits until there is room
    Block,
    /// The emitting thread waits for --block-timeout, then the record is dropped
    BlockWithTimeout,
    /// The record is dropped
    DropNewest,
    /// The oldest records in the queue are dropped
    DropOldest,
}
