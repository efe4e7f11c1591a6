//! Flags of `baler validate`.

use std::time::Duration;

use clap::Args;

use super::{DocumentFormat, ShippingArgs, SpoolArgs, media, values};

/// Flags of `baler validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    #[arg(
        long,
        value_name = "URI",
        help = format!(
            "Check this source: {}. Without --from and --to, those of all sections of the --config \
             file are checked",
            media::sources()
        )
    )]
    pub(crate) from: Option<String>,
    #[arg(long, value_name = "URI", help = format!("Check this target: {}", media::targets()))]
    pub(crate) to: Option<String>,
    /// Connect to the endpoints as well: reach, credentials, topic or queue, the broker's limits
    ///
    /// No chunk is sent or taken. A queue or exchange is declared as its URI says, a folder is made,
    /// a Kafka broker may make a topic of its own accord; a reader of a topic joins its group for a
    /// moment.
    #[arg(long)]
    pub(crate) connect: bool,
    /// How long connecting to one endpoint may take
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5s",
        value_parser = values::duration
    )]
    pub(crate) timeout: Duration,
    /// How the result is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    #[command(flatten)]
    pub(crate) shipping: ShippingArgs,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
}
