//! What every command takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

use super::values;

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Say more on standard error: -v what happens, -vv details, -vvv everything
    ///
    /// BALER_LOG takes tracing's directives instead, `baler_monitoring=debug` for instance.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Say nothing on standard error but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Take what flags and environment do not say from this TOML file
    ///
    /// A section a command, `[global]`, `[observe]` and `[shipping]` for what several take; a key is
    /// a flag's name with underscores: `[send]` wait_time = "1s".
    #[arg(long, global = true, value_name = "FILE", env = "BALER_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// How long the program may take to drain and end after SIGINT, SIGTERM or the last record
    #[arg(
        long,
        global = true,
        value_name = "DURATION",
        default_value = "10s",
        env = "BALER_SHUTDOWN_TIMEOUT",
        value_parser = values::duration
    )]
    pub(crate) shutdown_timeout: Duration,
}

/// How a command shows its result on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// One JSON document and nothing else
    Json,
    /// Text and tables of at most 100 columns
    Table,
}
