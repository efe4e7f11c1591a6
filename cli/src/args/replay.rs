//! Flags of `baler replay`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{DecodingArgs, DocumentFormat, GiveUpArgs, SpoolArgs, media, values};

/// Flags of `baler replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// What to send on: the folder of a quarantine, or the URI of a medium with chunks or with a
    /// quarantine
    #[arg(value_name = "DIR|URI")]
    pub(crate) what: String,
    #[arg(
        long,
        value_name = "URI",
        required_unless_present = "check",
        help = format!("Where the chunks go: {}", media::targets())
    )]
    pub(crate) to: Option<String>,
    /// Send nothing: only report which chunks decode now
    #[arg(long, conflicts_with_all = ["to", "remove"])]
    pub(crate) check: bool,
    /// Remove from the folder what the target has confirmed
    #[arg(long)]
    pub(crate) remove: bool,
    /// What happens to chunks that do not decode
    #[arg(long, value_enum, default_value = "skip")]
    pub(crate) undecodable: Undecodable,
    /// Stop when nothing has arrived from a medium for this long, counted from its end
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = values::duration)]
    pub(crate) idle_timeout: Duration,
    #[command(flatten)]
    pub(crate) give_up: GiveUpArgs,
    #[command(flatten)]
    pub(crate) decoding: DecodingArgs,
    /// How the summary is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
}

/// What happens to chunks that do not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Undecodable {
    /// Send them as they are, if their identity is known
    Send,
    /// Leave them where they are, and count them
    Skip,
}
