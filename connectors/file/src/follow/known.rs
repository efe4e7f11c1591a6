//! A file that a follower reads: its place, its content, and the progress of reading it.

use std::cmp::Reverse;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use crate::follow::content::{Content, FileId, HEAD_BYTES};
use crate::follow::names::{Age, without_compression};
use crate::follow::position::{FilePosition, Mark};

/// Names a file of a [`Follower`](crate::follow::Follower), whatever its path is meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey(pub(crate) u64);

/// A file that was found in a folder.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The log that it is a generation of.
    pub(crate) log: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) age: Age,
    pub(crate) id: FileId,
    pub(crate) length: u64,
    pub(crate) modified: SystemTime,
}

/// The progress of reading a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It was read to its end, and may grow.
    AtEnd,
    /// It was read to its end, and will not grow.
    Finished,
    /// A read may give bytes.
    HasMore,
}

/// A file of the set.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) key: FileKey,
    pub(crate) found: Candidate,
    /// How far it was read, and how far this is settled.
    pub(crate) read: Mark,
    pub(crate) settled: Mark,
    pub(crate) content: Option<Content>,
    pub(crate) reading: Reading,
    /// Whether nothing will be appended: its end is the end of its last line.
    pub(crate) is_complete: bool,
    /// Since when it is at its end.
    pub(crate) quiet_since: Option<Instant>,
    /// Whether newer generations of its log are there.
    pub(crate) is_rotated: bool,
    /// Whether it could not be read for now.
    pub(crate) is_blocked: bool,
    /// In how many looks in a row it had no name.
    pub(crate) missing: u32,
    /// Why its content is gone, if it is.
    pub(crate) gone: Option<&'static str>,
}

impl Known {
    pub(crate) fn new(key: FileKey, found: Candidate, mark: Mark) -> Self {
        Self {
            key,
            found,
            read: mark,
            settled: mark,
            content: None,
            reading: Reading::HasMore,
            is_complete: false,
            quiet_since: None,
            is_rotated: false,
            is_blocked: false,
            missing: 0,
            gone: None,
        }
    }

    pub(crate) fn stored(key: FileKey, position: FilePosition) -> Self {
        let found = Candidate {
            log: position.log,
            path: position.path,
            age: Age::Live,
            id: FileId {
                device: position.device,
                inode: position.inode,
            },
            length: position.length,
            modified: SystemTime::UNIX_EPOCH,
        };
        let mut known = Self::new(key, found, position.mark);
        if position.is_finished {
            known.reading = Reading::Finished;
        }
        known
    }

    pub(crate) fn position(&self) -> FilePosition {
        FilePosition {
            log: self.found.log.clone(),
            path: self.found.path.clone(),
            device: self.found.id.device,
            inode: self.found.id.inode,
            length: self.found.length,
            is_finished: self.is_finished() && self.settled.offset == self.read.offset,
            mark: self.settled,
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.reading == Reading::Finished
    }

    /// Notes that a read may give bytes, unless the file is finished.
    pub(crate) fn expect_more(&mut self) {
        if self.reading == Reading::AtEnd {
            self.reading = Reading::HasMore;
        }
    }

    /// Returns the open file.
    ///
    /// # Errors
    ///
    /// The operating system refuses, or the path has another file now.
    pub(crate) fn open(&mut self) -> io::Result<&mut Content> {
        let content = match self.content.take() {
            Some(content) => content,
            None => {
                let content = Content::open(&self.found.path)?;
                if content.id != self.found.id {
                    let message = "it is another file now";
                    return Err(io::Error::new(io::ErrorKind::NotFound, message));
                }
                content
            }
        };
        Ok(self.content.insert(content))
    }

    /// Whether this file is the known one, by its content.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(crate) fn is_in(&mut self, found: &Candidate) -> io::Result<bool> {
        let is_as_before = (found.length, found.modified, &found.path)
            == (self.found.length, self.found.modified, &self.found.path);
        // Unpacking a large file costs seconds.
        let is_packed_before = self.is_finished()
            && found.length == self.found.length
            && without_compression(&found.path.to_string_lossy()) != found.path.to_string_lossy();
        if found.id == self.found.id && found.age != Age::Live && (is_as_before || is_packed_before)
        {
            return Ok(true);
        }
        if !self.read.is_known() && found.id != self.found.id {
            return Ok(false);
        }
        match &mut self.content {
            Some(content) if content.id == found.id => content.has(&self.read),
            _ => {
                let mut content = Content::open(&found.path)?;
                Ok(content.id == found.id && content.has(&self.read)?)
            }
        }
    }

    /// Takes the name and the place of a file with the same content.
    pub(crate) fn adopt(&mut self, found: Candidate) {
        let has_changed = (found.length, found.modified, found.id)
            != (self.found.length, self.found.modified, self.found.id);
        let was_blocked = std::mem::take(&mut self.is_blocked);
        if has_changed || was_blocked || self.missing > 0 {
            self.expect_more();
        }
        self.gone = None;
        self.found = found;
        self.missing = 0;
    }

    /// Extends the checksum of the beginning while the file is short.
    pub(crate) fn look_at_head(&mut self) -> io::Result<()> {
        if self.read.head_bytes >= HEAD_BYTES || self.is_finished() && self.read.is_known() {
            return Ok(());
        }
        let mut head = Vec::new();
        self.open()?.read_at(0, HEAD_BYTES, &mut head)?;
        let before = head.get(..self.read.head_bytes);
        // Otherwise the file has just become another one.
        if before.is_some_and(|before| self.read.head_of(before) == self.read.head) {
            self.read.begin_with(&head);
            self.settled.begin_with(&head);
        }
        Ok(())
    }

    /// Whether it was not written for this time.
    pub(crate) fn is_quiet(&self, delay: Duration) -> bool {
        let age = SystemTime::now().duration_since(self.found.modified);
        let is_quiet = self
            .quiet_since
            .is_some_and(|since| since.elapsed() >= delay);
        is_quiet || age.is_ok_and(|age| age >= delay)
    }

    /// Returns how many bytes it had after the last read one, as far as that is known. Of a
    /// compressed file, more bytes may be read than it has.
    pub(crate) fn unread(&self) -> u64 {
        self.found.length.saturating_sub(self.read.offset)
    }
}

/// Orders files by log, and the generations of a log from old to new: by their dates if all have
/// one, otherwise by the time of their last change.
pub(crate) fn sort(files: &mut [Known]) {
    files.sort_by(|a, b| a.found.log.cmp(&b.found.log));
    for log in files.chunk_by_mut(|a, b| a.found.log == b.found.log) {
        let has_dates = log.iter().all(|it| !matches!(it.found.age, Age::Number(_)));
        log.sort_by_cached_key(|it| Generation::of(&it.found, has_dates));
    }
}

/// Compares the generations of a log. Of two that changed at the same time, the one with the
/// greater number is older.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Generation {
    Dated(Vec<u64>),
    Changed(SystemTime, Reverse<u64>),
    Live,
}

impl Generation {
    fn of(found: &Candidate, has_dates: bool) -> Self {
        match &found.age {
            Age::Live => Self::Live,
            Age::Date(date) if has_dates => Self::Dated(date.clone()),
            Age::Date(_) => Self::Changed(found.modified, Reverse(0)),
            Age::Number(number) => Self::Changed(found.modified, Reverse(*number)),
        }
    }
}
