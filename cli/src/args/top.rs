//! Flags of `baler top`.

use std::time::Duration;

use clap::Args;

use super::{DocumentFormat, values};

/// Flags of `baler top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Where the process shows its metrics: the address of its --metrics, as a URL or host:port
    #[arg(
        value_name = "URL",
        default_value = "http://127.0.0.1:9464",
        env = "BALER_TOP_ADDRESS",
        hide_env_values = true
    )]
    pub(crate) address: String,
    /// How often to look; + and - change it
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = values::duration)]
    pub(crate) interval: Duration,
    /// Look twice, an interval apart, print what was seen, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// How --once prints it
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: DocumentFormat,
}
