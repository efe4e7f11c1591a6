//! Flags of `baler demo`.

use std::num::NonZeroUsize;

use clap::Args;

use super::{DocumentFormat, ObserveArgs, ShippingArgs};

/// Flags of `baler demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// How long customers visit the shop, in seconds
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    pub(crate) seconds: u64,
    /// How many threads serve customers
    #[arg(long, value_name = "N", default_value = "4")]
    pub(crate) threads: NonZeroUsize,
    /// How the result is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    #[command(flatten)]
    pub(crate) shipping: ShippingArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}
