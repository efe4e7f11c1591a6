//! Flags of `baler probes`, and those of commands that switch probes.

use std::path::PathBuf;

use baler_common::pattern::Dialect;
use clap::builder::TypedValueParser as _;
use clap::{Args, Subcommand};

use super::DocumentFormat;

/// Which probes of connected programs record.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Adaptive monitoring")]
pub(crate) struct AdaptiveArgs {
    /// Switch the probes of the programs that send to a kieker+tcp: source, by the patterns of this
    /// file; a change of the file counts at once
    ///
    /// A line is `+` or `-` and a pattern over signatures; the last one that matches counts. The
    /// programs must speak the adaptive protocol (docs/adaptive.md).
    #[arg(long, value_name = "FILE", env = "BALER_ADAPTIVE")]
    pub(crate) adaptive: Option<PathBuf>,
    /// The syntax of patterns: kieker, strict or rust [default: strict]
    #[arg(
        long,
        value_name = "DIALECT",
        env = "BALER_ADAPTIVE_DIALECT",
        value_parser = dialect_parser()
    )]
    pub(crate) adaptive_dialect: Option<Dialect>,
    /// Let `baler probes` list and switch probes through --metrics, with the token in this file
    #[arg(
        long,
        value_name = "FILE",
        env = "BALER_PROBES_TOKEN",
        requires = "metrics"
    )]
    pub(crate) probes_token: Option<PathBuf>,
    /// Let it do so also if the address of --metrics is not loopback; the token travels unencrypted
    #[arg(long, requires = "probes_token")]
    pub(crate) probes_remote: bool,
}

fn dialect_parser() -> impl clap::builder::TypedValueParser<Value = Dialect> {
    let names = Dialect::ALL.map(Dialect::name);
    clap::builder::PossibleValuesParser::new(names).try_map(|name| {
        let mut all = Dialect::ALL.into_iter();
        all.find(|it| it.name() == name).ok_or("no dialect")
    })
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
    /// Make the probes that a pattern matches record
    Activate {
        /// A pattern over signatures; it takes precedence over all others
        #[arg(value_name = "PATTERN")]
        pattern: String,
        #[command(flatten)]
        via: ViaArgs,
    },
    /// Make the probes that a pattern matches stop recording
    Deactivate {
        /// A pattern over signatures; it takes precedence over all others
        #[arg(value_name = "PATTERN")]
        pattern: String,
        #[command(flatten)]
        via: ViaArgs,
    },
}

/// The process that switches the probes.
#[derive(Debug, Args)]
pub(crate) struct ViaArgs {
    /// The --metrics address of a relay with --probes-token: http://host:port
    #[arg(long, value_name = "URL")]
    pub(crate) via: String,
    /// The file with the token of --probes-token
    #[arg(long, value_name = "FILE", env = "BALER_PROBES_TOKEN")]
    pub(crate) token_file: PathBuf,
}
