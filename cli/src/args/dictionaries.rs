//! Where the dictionaries of chunks are, for commands that decode.

use std::path::PathBuf;

use clap::Args;

/// Dictionaries that chunks may name.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DictionariesArgs {
    /// A dictionary that chunks were compressed with, or a folder with files `*.zdict`; may be given
    /// several times
    #[arg(long, value_name = "PATH")]
    pub(crate) dictionaries: Vec<PathBuf>,
}
