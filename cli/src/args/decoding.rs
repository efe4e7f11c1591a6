//! What commands that decode need for it: dictionaries, and a limit of memory.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::values;

/// How chunks are decoded.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DecodingArgs {
    /// A dictionary that chunks were compressed with, or a folder with files `*.zdict`; may be given
    /// several times
    #[arg(long, value_name = "PATH")]
    pub(crate) dictionaries: Vec<PathBuf>,
    /// The most memory that one decoded chunk may take, 1GiB unless set; the workers of `receive`
    /// share it in equal parts
    ///
    /// A chunk that would take more is treated as one that does not decode: it goes to the
    /// quarantine. A few chunks of each worker can be in work at the same time.
    #[arg(long, value_name = "SIZE", env = "BALER_DECODED_LIMIT", value_parser = values::size)]
    pub(crate) decoded_limit: Option<NonZeroUsize>,
}
