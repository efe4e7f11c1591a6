//! Up to where the files of a log were read, kept in a file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use baler_blocking::files::{if_found, replace_file};
use serde::{Deserialize, Serialize};

/// The place of the first record of a folder that was not read. Files have names that grow, so the
/// name tells which ones were read before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilePosition {
    pub(super) file: Box<str>,
    /// In bytes, decompressed; or [`FilePosition::LOST`].
    pub(super) offset: u64,
    /// How many lines of a text log end before it.
    pub(super) line: u64,
}

impl FilePosition {
    /// The rest of the file cannot be read.
    pub(super) const LOST: u64 = u64::MAX;
}

/// The position of a log: that of each of its folders, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogPosition {
    pub(super) folders: BTreeMap<Box<str>, FilePosition>,
}

impl LogPosition {
    /// Reads a position from a file; the beginning of the log if there is no such file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds something else.
    pub(super) fn load(file: &Path) -> io::Result<Self> {
        let Some(bytes) = if_found(fs::read(file))? else {
            return Ok(Self::default());
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("it holds no position of a log of Kieker: {error}");
            io::Error::other(message)
        })
    }

    /// Writes the position to a file, which has either the old or the new position whenever the
    /// process or the machine stops.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(super) fn save(&self, file: &Path) -> io::Result<()> {
        replace_file(file, &serde_json::to_vec(self)?)
    }
}
