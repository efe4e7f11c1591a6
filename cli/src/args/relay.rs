//! Flags of `baler relay`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

#[cfg(feature = "kieker")]
use super::AdaptiveArgs;
use super::{
    DocumentFormat, GiveUpArgs, ObserveArgs, QuarantineArgs, SchemasArgs, SpoolArgs, values,
};

/// Flags of `baler relay`.
#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// Where the chunks come from, for instance file:///folder
    #[arg(long, value_name = "URI", env = "BALER_FROM", hide_env_values = true)]
    pub(crate) from: String,
    /// Where the chunks go, for instance file:///folder
    #[arg(long, value_name = "URI", env = "BALER_TO", hide_env_values = true)]
    pub(crate) to: String,
    /// Wait for more at the end of a source
    ///
    /// `?follow` in the URI of lines and logs (jsonl:, text:, kieker-log:) does the same, and saves a
    /// position, where the next run goes on.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Stop after this many chunks, counting repeated ones [default: never]
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub(crate) count_chunks: Option<u64>,
    /// Stop when the source was read to its end, everything is confirmed, and nothing more arrives
    /// for this long [default: never]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) give_up: GiveUpArgs,
    #[command(flatten)]
    pub(crate) quarantine: QuarantineArgs,
    /// The most chunks that are received and not yet settled
    #[arg(
        long,
        value_name = "N",
        default_value = "1024",
        env = "BALER_MAX_CHUNKS"
    )]
    pub(crate) max_chunks: NonZeroUsize,
    /// The most bytes that are received and not yet settled
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
    /// Write the address that a tcp: or kafka+mock: source listens on to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    #[cfg(feature = "kieker")]
    #[command(flatten)]
    pub(crate) adaptive: AdaptiveArgs,
    #[command(flatten)]
    pub(crate) schemas: SchemasArgs,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}

#[cfg(test)]
mod tests;
