//! Flags of a quarantine, for every command that reads from a medium.

use std::num::NonZeroUsize;

use clap::Args;

use super::values;

/// Where chunks go that cannot be processed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct QuarantineArgs {
    /// Keep chunks that do not decode, or that the target of a relay refuses: in this folder, or in
    /// the topic or queue of this URI
    ///
    /// The origin and the reason are kept beside each chunk. Without a quarantine, chunks that do not
    /// decode are counted and skipped; a chunk that a relay's target refuses stays at the source, and
    /// the relay ends.
    #[arg(
        long,
        value_name = "DIR|URI",
        env = "BALER_QUARANTINE",
        hide_env_values = true
    )]
    pub(crate) quarantine: Option<String>,
    /// The most bytes that the folder of the quarantine may hold; the first chunk that does not fit
    /// stays at the source, and the command ends [default: 1GiB and 10,000 chunks; what does not fit
    /// is discarded and counted]
    #[arg(
        long,
        value_name = "SIZE",
        env = "BALER_QUARANTINE_BYTES",
        value_parser = values::size
    )]
    pub(crate) quarantine_bytes: Option<NonZeroUsize>,
}
