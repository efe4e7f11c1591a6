//! Flags of `baler send`.

use std::time::Duration;

use clap::Args;

use super::{
    DecodingArgs, DocumentFormat, ObserveArgs, QuarantineArgs, ShippingArgs, SpoolArgs, media,
    values,
};

/// Flags of `baler send`.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    #[arg(
        long,
        value_name = "URI",
        env = "BALER_FROM", hide_env_values = true,
        help = format!(
            "Where the records come from: kieker-log:DIR is a text log of Kieker; {}",
            media::sources()
        ),
        long_help = format!(
            "Where the records come from: kieker-log:DIR is a text log of Kieker; {}\n\n\
             Lines of a log that are not records are counted and skipped. With \
             kieker-log:DIR?on_bad_line=stop, the first such line ends the command.",
            media::sources()
        )
    )]
    pub(crate) from: String,
    #[arg(
        long,
        value_name = "URI",
        env = "BALER_TO",
        hide_env_values = true,
        help = format!("Where the records go: {}", media::targets())
    )]
    pub(crate) to: String,
    /// Stop when nothing has arrived from a medium for this long, counted from its end; --give-up
    /// then holds for that medium too
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) decoding: DecodingArgs,
    #[command(flatten)]
    pub(crate) quarantine: QuarantineArgs,
    /// How the summary is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    #[command(flatten)]
    pub(crate) shipping: ShippingArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
}
