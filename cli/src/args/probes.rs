//! Flags of `baler probes`, and those of commands that switch probes.

use std::path::PathBuf;

#[cfg(feature = "kieker")]
use baler_connector_kieker::pattern::Dialect;
use clap::{Args, Subcommand};

use super::DocumentFormat;
#[cfg(feature = "kieker")]
use super::values::dialects;

/// Which probes of connected programs record.
#[cfg(feature = "kieker")]
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AdaptiveArgs {
    /// Switch the probes of the programs that send to a kieker+tcp: source, by the patterns of this
    /// file, which is watched
    ///
    /// A line is `+` or `-` and a pattern over signatures; the last one that matches counts. A wrong
    /// line is reported and left out. A change of the file replaces all patterns, also those of `baler
    /// probes`. The programs must speak the adaptive protocol (docs/adaptive.md).
    #[arg(long, value_name = "FILE", env = "BALER_ADAPTIVE")]
    pub(crate) adaptive: Option<PathBuf>,
    /// The syntax of patterns: kieker, strict or rust [default: strict]
    #[arg(
        long,
        value_name = "DIALECT",
        env = "BALER_ADAPTIVE_DIALECT",
        value_parser = dialects()
    )]
    pub(crate) adaptive_dialect: Option<Dialect>,
    /// Let `baler probes` list and switch probes through --metrics, with the token in this file
    #[arg(long, value_name = "FILE", env = "BALER_PROBES_TOKEN")]
    pub(crate) probes_token: Option<PathBuf>,
    /// Let it do so also if the address of --metrics is not loopback; the token travels unencrypted
    #[arg(long)]
    pub(crate) probes_remote: bool,
}

/// Flags of `baler probes`.
#[derive(Debug, Args)]
pub(crate) struct ProbesArgs {
    #[command(subcommand)]
    pub(crate) command: ProbesCommand,
}

/// What to do with the probes.
#[derive(Debug, Subcommand)]
pub(crate) enum ProbesCommand {
    /// Show the connected programs, and the signatures of their probes
    List {
        #[command(flatten)]
        via: ViaArgs,
        /// How the programs are shown
        #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
        format: DocumentFormat,
    },
    /// Make the probes that a pattern matches record, also of programs that connect later
    Activate(SwitchArgs),
    /// Make the probes that a pattern matches stop recording, also of programs that connect later
    Deactivate(SwitchArgs),
}

/// Flags of `baler probes activate` and `baler probes deactivate`.
#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// A pattern over signatures; it takes precedence over all others, until the file of
    /// --adaptive changes
    #[arg(value_name = "PATTERN")]
    pub(crate) pattern: String,
    #[command(flatten)]
    pub(crate) via: ViaArgs,
}

/// The process that switches the probes.
#[derive(Debug, Args)]
pub(crate) struct ViaArgs {
    /// The --metrics address of a relay or receiver with --probes-token: http://host:port
    #[arg(long, value_name = "URL")]
    pub(crate) via: String,
    /// The file with the token of --probes-token
    #[arg(long, value_name = "FILE", env = "BALER_PROBES_TOKEN")]
    pub(crate) token_file: PathBuf,
}
