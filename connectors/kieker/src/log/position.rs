//! Up to where the files of a log were read, kept in a file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;

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
        match fs::read(file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                let message = format!("it holds no position of a log of Kieker: {error}");
                io::Error::other(message)
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Writes the position to a file, which has either the old or the new position whenever the
    /// process or the machine stops.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(super) fn save(&self, file: &Path) -> io::Result<()> {
        let mut name = OsString::from(".");
        name.push(file.file_name().unwrap_or_default());
        name.push(".new");
        let new = file.with_file_name(name);
        // Made anew, so that no link is followed that somebody else planted there.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut output = File::create_new(&new)?;
        serde_json::to_writer(&mut output, self)?;
        output.sync_data()?;
        fs::rename(new, file)
    }
}
