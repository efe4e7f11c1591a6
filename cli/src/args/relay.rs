//! Flags of `baler relay`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{DocumentFormat, ObserveArgs, SpoolArgs, values};

/// Flags of `baler relay`.
#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// Where the chunks come from: tcp://host:port listens there for any number of senders, kafka:
    /// joins a group, amqp: reads a queue, file: reads a folder
    #[arg(long, value_name = "URI", env = "BALER_FROM")]
    pub(crate) from: String,
    /// Where they go: kafka://host:port/topic, amqp://host:port/vhost?queue=name, tcp://host:port,
    /// file:///folder or null:
    #[arg(long, value_name = "URI", env = "BALER_TO")]
    pub(crate) to: String,
    /// Wait for more at the end of a file source
    #[arg(long)]
    pub(crate) follow: bool,
    /// Stop after so many chunks, repeated ones included
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub(crate) count_chunks: Option<u64>,
    /// Stop when nothing came for so long and everything is confirmed
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    /// Keep chunks that the target refuses for good, and what is no chunk: in this folder, or in a
    /// topic or queue by its URI
    ///
    /// Without it a chunk that is refused ends the relay and stays at the source.
    #[arg(long, value_name = "DIR|URI", env = "BALER_QUARANTINE")]
    pub(crate) quarantine: Option<String>,
    /// How many chunks may be received and not settled
    #[arg(
        long,
        value_name = "N",
        default_value = "1024",
        env = "BALER_MAX_CHUNKS"
    )]
    pub(crate) max_chunks: NonZeroUsize,
    /// How many bytes may be received and not settled
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64MiB",
        env = "BALER_MAX_BYTES",
        value_parser = values::size
    )]
    pub(crate) max_bytes: NonZeroUsize,
    /// How the summary is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    /// Write the address that a tcp source listens on to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}
