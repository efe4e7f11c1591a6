//! Flags of a spool, for every command that writes to a medium.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values;

/// What happens to chunks while the medium is away.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Spool")]
pub(crate) struct SpoolArgs {
    /// Store chunks in this folder while the medium cannot be reached, and send them when it can, in
    /// this run or the next; each process needs a folder of its own
    #[arg(long, value_name = "DIR", env = "BALER_SPOOL")]
    pub(crate) spool: Option<PathBuf>,
    /// How long the medium may be away before chunks are stored on disk [default: 1s]
    #[arg(
        long,
        value_name = "DURATION",
        env = "BALER_SPOOL_AFTER",
        value_parser = values::duration
    )]
    pub(crate) spool_after: Option<Duration>,
    /// The most bytes of the spool on disk; when it is full, senders wait [default: 1GiB]
    #[arg(
        long,
        value_name = "SIZE",
        env = "BALER_SPOOL_BYTES",
        value_parser = values::size
    )]
    pub(crate) spool_bytes: Option<NonZeroUsize>,
    /// Whether a chunk is forced to disk before it counts as spooled [default: fsync]
    #[arg(
        long,
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "fsync",
        env = "BALER_SPOOL_SYNC"
    )]
    pub(crate) spool_sync: Option<SpoolSyncChoice>,
}

/// What a spooled chunk survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpoolSyncChoice {
    /// A crash of the machine; all chunks that wait share one call
    Fsync,
    /// The end of the process only
    None,
}
