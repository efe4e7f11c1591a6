//! Flags of `baler inspect`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{DecodingArgs, DocumentFormat, GiveUpArgs, values};

/// Flags of `baler inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A chunk, a segment, a folder of them, or a URI
    #[arg(value_name = "PATH|URI")]
    pub(crate) what: String,
    /// Show this many records of each chunk, the first ones
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) records: usize,
    /// Look at no more than this many chunks
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) count: usize,
    /// Show at most this many strings of each chunk
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) strings: usize,
    /// Stop when nothing has arrived from a live endpoint for this long, counted from its end
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    pub(crate) idle_timeout: Duration,
    #[command(flatten)]
    pub(crate) give_up: GiveUpArgs,
    #[command(flatten)]
    pub(crate) decoding: DecodingArgs,
    /// How the result is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    /// Write the address that a tcp: or kafka+mock: endpoint listens on to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
}
