//! The positions up to which the files of a log were read, stored in a file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use baler_connector_file::follow::Places;
use baler_connector_file::{if_found, replace_file};
use serde::{Deserialize, Serialize};

/// The place of the first record of a folder that was not read.
///
/// Names do not tell which files were read before: after a clock was set back, a new file has a
/// lesser name. So a stored position has these files.
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
    /// How many files of its folder were read before this one.
    #[serde(skip)]
    pub(super) files_before: usize,
    /// These files in a stored position: 32 hexadecimal digits each. A position of an old version
    /// has none; then they are all files with lesser names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) read: Option<Box<str>>,
}

impl FilePosition {
    /// The offset of a file whose rest cannot be read.
    pub(super) const LOST: u64 = u64::MAX;

    /// The place before the first record of a file.
    pub(super) fn beginning(file: Box<str>) -> Self {
        Self {
            file,
            ..Self::default()
        }
    }

    /// Returns the files that were read before; none if they are not stored.
    pub(super) fn read_before(&self) -> impl Iterator<Item = ReadFile> {
        let digits = self.read.iter().flat_map(|it| it.as_bytes().chunks(32));
        digits.filter_map(ReadFile::parsed)
    }
}

/// A file that was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadFile {
    /// A checksum of its name.
    pub(super) name: u64,
    /// Its end, or [`FilePosition::LOST`] if nothing can follow.
    pub(super) end: u64,
}

impl ReadFile {
    fn parsed(digits: &[u8]) -> Option<Self> {
        let (name, end) = str::from_utf8(digits).ok()?.split_at_checked(16)?;
        let [name, end] = [name, end].map(|digits| u64::from_str_radix(digits, 16).ok());
        Some(Self {
            name: name?,
            end: end?,
        })
    }
}

/// The position of a log: the positions of its folders, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogPosition {
    pub(super) folders: BTreeMap<Box<str>, FilePosition>,
}

impl Places for LogPosition {
    fn add(&mut self, later: Self) {
        self.folders.extend(later.folders);
    }
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

    /// Writes the position to a file, with the files that were read: `read` returns those
    /// of a folder, in the order of reading. Whenever the process or the machine stops, the file has
    /// either the old or the new position.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(super) fn save<'a>(
        &self,
        file: &Path,
        read: impl Fn(&str) -> Option<&'a [ReadFile]>,
    ) -> io::Result<()> {
        let mut stored = self.clone();
        for (name, position) in &mut stored.folders {
            let files = read(name).and_then(|files| files.get(..position.files_before));
            let digits = |file: &ReadFile| format!("{:016x}{:016x}", file.name, file.end);
            let digits = files.map(|files| files.iter().map(digits).collect());
            position.read = digits.map(String::into_boxed_str);
        }
        replace_file(file, &serde_json::to_vec(&stored)?)
    }
}
