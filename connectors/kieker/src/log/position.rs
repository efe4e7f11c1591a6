//! The positions up to which the files of a log were read, stored in a file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use baler_blocking::files::{if_found, replace_file};
use serde::{Deserialize, Serialize};

/// The place of the first record of a folder that was not read. The names of files ascend, so the
/// name shows which files were read before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilePosition {
    pub(super) file: Box<str>,
    /// The offset in the decompressed bytes, or [`FilePosition::LOST`].
    pub(super) offset: u64,
    /// The number of lines of a text log before it.
    pub(super) line: u64,
    /// The unit of times after it; none is nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unit: Option<Box<str>>,
}

impl FilePosition {
    /// The offset of a file whose rest cannot be read.
    pub(super) const LOST: u64 = u64::MAX;
}

/// The position of a log: the positions of its folders, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogPosition {
    pub(super) folders: BTreeMap<Box<str>, FilePosition>,
}

impl LogPosition {
    /// Reads a position from a file. Returns the beginning of the log if there is no such file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has other content.
    pub(super) fn load(file: &Path) -> io::Result<Self> {
        let Some(bytes) = if_found(fs::read(file))? else {
            return Ok(Self::default());
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("it holds no position of a log of Kieker: {error}");
            io::Error::other(message)
        })
    }

    /// Writes the position to a file. Whenever the process or the machine stops, the file has
    /// either the old or the new position.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(super) fn save(&self, file: &Path) -> io::Result<()> {
        replace_file(file, &serde_json::to_vec(self)?)
    }
}
