//! Flags of a quarantine, for every command that reads from a medium.

use std::num::NonZeroUsize;

use clap::Args;

use super::values;

/// Where chunks go that cannot be processed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct QuarantineArgs {
    /// Keep chunks that do not decode, or that a relay's target refuses for good: in this folder,
    /// with coordinates and reason, or in a topic or queue by its URI
    ///
    /// Without it, what does not decode is counted and skipped; a chunk that a relay's target
    /// refuses stays at the source and ends the relay.
    #[arg(long, value_name = "DIR|URI", env = "BALER_QUARANTINE")]
    pub(crate) quarantine: Option<String>,
    /// The most bytes that a quarantine's folder may have; the chunk that would pass it stays at
    /// the source and ends the command
    #[arg(
        long,
        value_name = "SIZE",
        env = "BALER_QUARANTINE_BYTES",
        value_parser = values::size
    )]
    pub(crate) quarantine_bytes: Option<NonZeroUsize>,
}
