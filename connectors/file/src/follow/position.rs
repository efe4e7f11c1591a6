//! The files of a set that were read, and how far; stored in a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{if_found, replace_file};

/// How many bytes before an offset tell a file from others.
pub(crate) const TAIL_BYTES: usize = 256;

/// Returns a checksum that is the same in every version of this program (FNV-1a, 64 bits).
pub fn checksum(bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// An offset in a file, with checksums of the bytes at the beginning of the file and of those
/// before the offset. Another file does not have it, whatever its name and number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The offset of the first byte that was not read, in decompressed bytes.
    pub offset: u64,
    #[serde(default)]
    pub(crate) head_bytes: usize,
    #[serde(default)]
    pub(crate) head: u64,
    #[serde(default)]
    pub(crate) tail_bytes: usize,
    #[serde(default)]
    pub(crate) tail: u64,
}

impl Mark {
    /// Whether it has checksums. A position of an old version has none.
    pub(crate) fn is_known(&self) -> bool {
        self.head_bytes > 0
    }

    pub(crate) fn head_of(&self, bytes: &[u8]) -> u64 {
        match self.head_bytes {
            0 => self.head,
            _ => checksum(bytes),
        }
    }

    pub(crate) fn tail_of(&self, bytes: &[u8]) -> u64 {
        match self.tail_bytes {
            0 => self.tail,
            _ => checksum(bytes),
        }
    }

    /// Moves to an offset after these bytes, of which the last ones tell the file from others.
    pub(crate) fn move_to(&mut self, offset: u64, before: &[u8]) {
        let last = before.last_chunk::<TAIL_BYTES>();
        let tail = last.map_or(before, |last| last.as_slice());
        self.offset = offset;
        self.tail_bytes = tail.len();
        self.tail = checksum(tail);
    }

    pub(crate) fn begin_with(&mut self, head: &[u8]) {
        self.head_bytes = head.len();
        self.head = checksum(head);
    }
}

/// A file that was read, in a stored position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilePosition {
    /// The log that it is a generation of.
    pub(crate) log: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Its length when it was last seen, as it is on disk.
    pub(crate) length: u64,
    /// Whether it was rotated and read to its end.
    pub(crate) is_finished: bool,
    #[serde(flatten)]
    pub(crate) mark: Mark,
}

/// The content of a file with a position.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Files {
        version: u32,
        files: Vec<FilePosition>,
    },
    /// Before files were known by their content.
    Inode {
        device: u64,
        inode: u64,
        offset: u64,
    },
}

/// Reads a position; `None` if there is no such file. `log` is the file that an old position means.
///
/// # Errors
///
/// The file cannot be read, or has other content.
pub(crate) fn load(file: &Path, log: &Path) -> io::Result<Option<Vec<FilePosition>>> {
    let Some(bytes) = if_found(fs::read(file))? else {
        return Ok(None);
    };
    let stored = serde_json::from_slice(&bytes).map_err(|error| error.to_string());
    let files = stored.and_then(|stored| match stored {
        Stored::Files { version: 2, files } => Ok(files),
        Stored::Files { version, .. } => Err(format!("its version {version} is unknown")),
        Stored::Inode {
            device,
            inode,
            offset,
        } => Ok(vec![FilePosition {
            log: log.to_owned(),
            path: log.to_owned(),
            device,
            inode,
            length: offset,
            is_finished: false,
            mark: Mark {
                offset,
                ..Mark::default()
            },
        }]),
    });
    let is_wrong = |file: &FilePosition| (file.mark.tail_bytes as u64) > file.mark.offset;
    match files {
        Ok(files) if !files.iter().any(is_wrong) => Ok(Some(files)),
        Ok(_) => Err(wrong(file, "an offset is less than the bytes before it")),
        Err(error) => Err(wrong(file, &error)),
    }
}

fn wrong(file: &Path, why: &str) -> io::Error {
    let file = file.display();
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{file} holds no position of a file: {why}"),
    )
}

/// Writes a position. Whenever the process or the machine stops, the file has either the old or the
/// new position.
///
/// # Errors
///
/// The operating system refuses.
pub(crate) fn save(file: &Path, files: Vec<FilePosition>) -> io::Result<()> {
    replace_file(
        file,
        &serde_json::to_vec(&Stored::Files { version: 2, files })?,
    )
}
