//! What every command takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

use super::values;

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Log more on standard error: -v what happens, -vv details, -vvv everything
    ///
    /// BALER_LOG takes directives of tracing instead, for instance `baler_monitoring=debug`; with -v
    /// they are added to it. NO_COLOR switches colours off.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print nothing but errors on standard error
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// A TOML file with defaults for flags; the command line and the environment come first
    ///
    /// Each command has a section, such as `[send]`. `[global]`, `[observe]` and `[shipping]` are for
    /// flags that several commands have. A key is a flag's name with underscores: wait_time = "1s".
    #[arg(long, global = true, value_name = "FILE", env = "BALER_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// How long the program may take to finish after SIGINT, SIGTERM or the last record
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
    /// JSON and nothing else
    Json,
    /// Text and tables, as wide as the terminal or as COLUMNS says
    Table,
}
