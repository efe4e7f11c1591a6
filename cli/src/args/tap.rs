//! Flags of `baler tap`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{DecodingArgs, DocumentFormat, GiveUpArgs, media, values};

/// Flags of `baler tap`.
#[derive(Debug, Args)]
pub(crate) struct TapArgs {
    #[arg(
        value_name = "URI",
        env = "BALER_TAP",
        hide_env_values = true,
        help = format!("What to look at: {}", media::tapped())
    )]
    pub(crate) from: String,
    /// Only records of these types: full names, last parts, or either with `*`
    #[arg(long = "type", value_name = "PATTERN", num_args = 1..)]
    pub(crate) types: Vec<String>,
    /// Only records for which this is true: an expression in CEL over the record's fields
    ///
    /// `traceId > 10 && operationSignature.contains("book")`; besides the fields there are type,
    /// timestamp (nanoseconds), producer, epoch, lane and sequence, and `fields["a name"]`. A
    /// record that lacks a field does not match.
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub(crate) condition: Option<String>,
    /// Begin with the oldest chunk that the medium has, not with the next one that arrives
    #[arg(long)]
    pub(crate) from_start: bool,
    /// Stop after this many records
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub(crate) count: Option<u64>,
    /// Show at most this many records per second; the others are counted
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub(crate) rate: Option<f64>,
    /// Stop when nothing has arrived for this long, counted from the end of the medium
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    /// A file with the token that a running command asks for (--metrics-tap)
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) give_up: GiveUpArgs,
    #[command(flatten)]
    pub(crate) decoding: DecodingArgs,
    /// How records are shown: one line each, or one JSON object each
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    /// Add its identity to each JSON record: producer, epoch, lane, sequence, index
    #[arg(long)]
    pub(crate) identity: bool,
}
