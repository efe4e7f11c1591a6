//! Flags of `baler generate`.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};

use super::{DocumentFormat, ObserveArgs, ShippingArgs, SpoolArgs, media, values};

/// Flags of `baler generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    #[arg(
        long,
        value_name = "URI",
        env = "BALER_TO",
        hide_env_values = true,
        help = format!("Where the records go: {}", media::targets())
    )]
    pub(crate) to: String,
    /// How many records
    #[arg(long, value_name = "N", default_value = "100000", value_parser = values::count)]
    pub(crate) records: u64,
    /// Records per second over all threads, at times fixed in advance [default: as fast as possible]
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub(crate) rate: Option<f64>,
    /// How many threads emit
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) threads: NonZeroUsize,
    /// The same seed makes the same records, thread by thread
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// What the records describe
    #[arg(long, value_enum, default_value = "operations")]
    pub(crate) workload: Workload,
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

/// A synthetic workload by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Call trees over 100 operations, popular ones more often, in 50 sessions
    Operations,
}
