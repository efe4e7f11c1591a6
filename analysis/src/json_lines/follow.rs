//! A file that another process writes, across rotations and restarts.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A rotated file must not have grown for this time before the next one is read. Its writer may
/// still have it open.
const ROTATION_DELAY: Duration = Duration::from_secs(5);

/// The position in a file. It survives a rename of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The device that the file is on.
    pub(super) device: u64,
    /// The file's number on the device.
    pub(super) inode: u64,
    /// The offset of the first byte that was not read.
    pub(super) offset: u64,
}

impl Position {
    /// Reads a position from a file; `None` if there is no such file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has other content.
    pub(super) fn load(file: &Path) -> io::Result<Option<Self>> {
        match fs::read(file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                let file = file.display();
                io::Error::other(format!("{file} holds no position of a file: {error}"))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the position to a file. Whenever the process or the machine stops, the file contains
    /// either the old or the new position.
    ///
    /// # Errors
    ///
    /// The operating system fails.
    pub(super) fn save(&self, file: &Path) -> io::Result<()> {
        let mut name = OsString::from(".");
        name.push(file.file_name().unwrap_or_default());
        name.push(".new");
        let new = file.with_file_name(name);
        // Create it again, so that no planted link is followed.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut output = File::create_new(&new)?;
        serde_json::to_writer(&mut output, self)?;
        output.sync_all()?;
        fs::rename(new, file)
    }

    fn beginning(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            offset: 0,
        }
    }

    fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// The result of a read.
pub(super) enum Fill {
    /// Bytes were read.
    Bytes,
    /// There is nothing to read yet.
    Nothing,
    /// This file was rotated and does not grow any more; another one follows.
    EndOfFile,
    /// The file is now shorter than the read part: its writer started over.
    Truncated,
    /// There will be nothing more to read.
    End,
}

/// A file, and its successors after rotations.
#[derive(Debug)]
pub(super) struct FollowedFile {
    path: PathBuf,
    is_followed: bool,
    file: File,
    /// The position in `file`.
    position: Position,
    /// Files that were rotated while no process read, from old to new; `path` follows.
    rotated: VecDeque<PathBuf>,
    /// Since when a rotated file has not grown.
    quiet_since: Option<Instant>,
}

impl FollowedFile {
    /// Opens a file at its beginning, or at the position that an earlier process saved. Also
    /// returns a description of data that this process had not read and that is gone.
    pub(super) fn open(
        path: &Path,
        is_followed: bool,
        position_file: Option<&Path>,
    ) -> io::Result<(Self, Option<String>)> {
        let (file, position) = open(path)?;
        let mut opened = Self {
            path: path.to_owned(),
            is_followed,
            file,
            position,
            rotated: VecDeque::new(),
            quiet_since: None,
        };
        let Some(position_file) = position_file else {
            return Ok((opened, None));
        };
        let Some(saved) = Position::load(position_file)? else {
            return Ok((opened, None));
        };
        if !saved.is_same_file(&position) {
            opened.rotated = rotated_since(path, &saved, position_file)?;
            let Some(first) = opened.rotated.pop_front() else {
                let lost = format!(
                    "the file that was read last is gone, with what it had after byte {}; \
                     reading goes on at the beginning of {}",
                    saved.offset,
                    path.display()
                );
                return Ok((opened, Some(lost)));
            };
            (opened.file, opened.position) = open(&first)?;
        }
        if opened.file.metadata()?.len() < saved.offset {
            let lost = format!(
                "{} is shorter than the {} bytes that were read before; it is read from its \
                 beginning, and what else was written after those bytes is lost",
                path.display(),
                saved.offset
            );
            return Ok((opened, Some(lost)));
        }
        opened.position.offset = saved.offset;
        opened.file.seek(SeekFrom::Start(saved.offset))?;
        Ok((opened, None))
    }

    /// Returns the current file and the position in it.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Appends the next part of the file to the buffer.
    pub(super) fn fill(&mut self, buffer: &mut Vec<u8>) -> io::Result<Fill> {
        const PART: u64 = 256 << 10;
        let read = (&mut self.file).take(PART).read_to_end(buffer)?;
        if read > 0 {
            let read = u64::try_from(read).unwrap_or(u64::MAX);
            self.position.offset = self.position.offset.saturating_add(read);
            self.quiet_since = None;
            return Ok(Fill::Bytes);
        }
        if !self.rotated.is_empty() {
            return Ok(Fill::EndOfFile);
        }
        if self.file.metadata()?.len() < self.position.offset {
            return Ok(Fill::Truncated);
        }
        let current = match fs::metadata(&self.path) {
            Ok(metadata) => Position::beginning(&metadata),
            // This happens between the two steps of a rotation.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.position,
            Err(error) => return Err(error),
        };
        if current.is_same_file(&self.position) {
            return Ok(match self.is_followed {
                true => Fill::Nothing,
                false => Fill::End,
            });
        }
        let quiet_since = *self.quiet_since.get_or_insert_with(Instant::now);
        match self.is_followed && quiet_since.elapsed() < ROTATION_DELAY {
            true => Ok(Fill::Nothing),
            false => Ok(Fill::EndOfFile),
        }
    }

    /// Continues with the next file.
    pub(super) fn next_file(&mut self) -> io::Result<()> {
        let next = self.rotated.pop_front();
        (self.file, self.position) = open(next.as_deref().unwrap_or(&self.path))?;
        self.quiet_since = None;
        Ok(())
    }

    /// Continues at the beginning of this file.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.position.offset = 0;
        self.file.rewind()
    }
}

fn open(path: &Path) -> io::Result<(File, Position)> {
    let file = File::open(path)?;
    let position = Position::beginning(&file.metadata()?);
    Ok((file, position))
}

/// Returns the file of this position and the files that were rotated after it, from old to new:
/// files beside `path` whose names begin with its name. Empty if the file of the position is gone.
fn rotated_since(
    path: &Path,
    saved: &Position,
    position_file: &Path,
) -> io::Result<VecDeque<PathBuf>> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.unwrap_or_else(|| Path::new(".")))? {
        let entry = entry?;
        let is_rotated = entry.file_name().as_encoded_bytes().starts_with(name);
        let is_other = ![path, position_file].contains(&&*entry.path());
        if is_rotated && is_other && entry.file_type()?.is_file() {
            let metadata = entry.metadata()?;
            let is_saved = saved.is_same_file(&Position::beginning(&metadata));
            found.push((metadata.modified()?, !is_saved, Reverse(entry.path())));
        }
    }
    // For equal times: the file of the position first, and `log.2` before `log.1`.
    found.sort();
    let first = found.iter().position(|(_, is_newer, _)| !is_newer);
    let newer = first
        .map(|first| found.split_off(first))
        .unwrap_or_default();
    Ok(newer
        .into_iter()
        .map(|(_, _, Reverse(path))| path)
        .collect())
}
