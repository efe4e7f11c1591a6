//! Flags of `baler send`.

use std::time::Duration;

use clap::Args;

use super::{
    DictionariesArgs, DocumentFormat, ObserveArgs, QuarantineArgs, ShippingArgs, SpoolArgs, values,
};

/// Flags of `baler send`.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// Where the records come from: kieker-log:DIR, or a medium: tcp://host:port, file:///folder
    ///
    /// Lines of a log that are no records are counted and skipped; kieker-log:DIR?on_bad_line=stop
    /// stops at the first.
    #[arg(long, value_name = "URI", env = "BALER_FROM")]
    pub(crate) from: String,
    /// Where they go: null:, tcp://host:port, kafka://host:port/topic or file:///folder
    #[arg(long, value_name = "URI", env = "BALER_TO")]
    pub(crate) to: String,
    /// Stop when nothing came from a medium for so long, from when it was at its end; --give-up then
    /// holds for that medium too
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) dictionaries: DictionariesArgs,
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
