//! Named consumers: their positions, their backlog, and the removal of segments that all of them
//! have settled.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::{FileLock, if_found, replace_file, sync_folder};
use baler_common::transport::TransportError;

use crate::segments::client::{
    CONSUMERS_FOLDER, LOCK_FILE, damaged_path, list_segments, make_folder, segment_name,
};
use crate::segments::error::io_error;
use crate::segments::headers::SEGMENT_HEADER_BYTES;
use crate::segments::reader::scanner::{Tail, for_each_frame};

/// A place in a folder. Later positions compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Position {
    /// The number of the segment's first chunk.
    pub segment: u64,
    /// The number of bytes before it in the segment.
    pub offset: u64,
}

/// A consumer's name, which is also a file's name: 1 to 100 of `a-z A-Z 0-9 . _ -`, without a dot
/// at the start.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConsumerName(Box<str>);

impl ConsumerName {
    pub(crate) const EXPECTED: &'static str = "1 to 100 letters, digits, '.', '_' or '-'";

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is not a valid consumer's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no consumer's name; use {expected}", expected = ConsumerName::EXPECTED)]
pub struct ConsumerNameError(Box<str>);

impl FromStr for ConsumerName {
    type Err = ConsumerNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let valid =
            (1..=100).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with('.');
        match valid {
            true => Ok(Self(name.into())),
            false => Err(ConsumerNameError(name.into())),
        }
    }
}

/// The position up to which everything is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Watermark {
    /// Everything before it is settled.
    pub(crate) position: Position,
    /// The number after the highest chunk that was settled or skipped before the position.
    pub(crate) next_chunk: u64,
}

impl Watermark {
    fn encode(self) -> String {
        let Self {
            position: Position { segment, offset },
            next_chunk,
        } = self;
        let body = format!(
            "\"version\":1,\"segment\":{segment},\"offset\":{offset},\"next_chunk\":{next_chunk}"
        );
        let crc = crc32c::crc32c(body.as_bytes());
        format!("{{{body},\"crc32c\":{crc}}}\n")
    }

    fn decode(text: &str) -> Option<Self> {
        let number = |name: &str| {
            let (_, rest) = text.split_once(&format!("\"{name}\":"))?;
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            rest.get(..end)?.parse().ok()
        };
        let watermark = Self {
            position: Position {
                segment: number("segment")?,
                offset: number("offset")?,
            },
            next_chunk: number("next_chunk")?,
        };
        // Encoding again checks the form and the checksum.
        (watermark.encode() == text).then_some(watermark)
    }
}

/// A named consumer that this reader has locked.
#[derive(Debug)]
pub(crate) struct Consumer {
    path: PathBuf,
    stored: Option<Watermark>,
    /// The bytes of the stored position, if they could not be decoded.
    pub(crate) damaged: Option<Vec<u8>>,
    _lock: FileLock,
}

impl Consumer {
    /// Locks the consumer and reads its position. Moves a position that cannot be read to
    /// `damaged/`. The consumer then begins at the start, which repeats chunks and loses none.
    pub(crate) fn open(folder: &Path, name: &ConsumerName) -> Result<Self, TransportError> {
        let consumers = folder.join(CONSUMERS_FOLDER);
        // A name may contain dots, so extensions are appended.
        let path = consumers.join(format!("{}.json", name.as_str()));
        let fail = |error| io_error("open consumer", &path, error);
        make_folder(&consumers).map_err(fail)?;
        let lock = FileLock::acquire(&path.with_extension("lock")).map_err(fail)?;
        let mut damaged = if_found(fs::read(&path)).map_err(fail)?;
        let text = damaged.as_deref().map(std::str::from_utf8);
        let stored = text.and_then(|text| Watermark::decode(text.ok()?));
        if stored.is_some() {
            damaged = None;
        } else if damaged.is_some() {
            let aside = damaged_path(folder, &format!("consumer-{}.bin", name.as_str()));
            fs::rename(&path, aside.map_err(fail)?).map_err(fail)?;
        }
        Ok(Self {
            path,
            stored,
            damaged,
            _lock: lock,
        })
    }

    /// Returns the position on disk.
    pub(crate) const fn stored(&self) -> Option<Watermark> {
        self.stored
    }

    /// Writes the watermark, durably and at once, if it has changed.
    pub(crate) fn store(&mut self, watermark: Watermark) -> Result<(), TransportError> {
        if self.stored != Some(watermark) {
            replace_file(&self.path, watermark.encode().as_bytes())
                .map_err(|error| io_error("write position to", &self.path, error))?;
            self.stored = Some(watermark);
        }
        Ok(())
    }
}

/// Reads the watermark in this file. Returns the start if it cannot be read, because its consumer
/// then begins at the start.
fn read_watermark(path: &Path) -> Watermark {
    let text = fs::read_to_string(path).ok();
    let stored = text.and_then(|text| Watermark::decode(&text));
    stored.unwrap_or_default()
}

/// Returns the watermarks of all consumers of the folder. A consumer may appear twice.
pub(crate) fn watermarks(folder: &Path) -> io::Result<Vec<Watermark>> {
    let entries = if_found(fs::read_dir(folder.join(CONSUMERS_FOLDER)))?;
    let mut watermarks = Vec::new();
    for entry in entries.into_iter().flatten() {
        let path = entry?.path();
        // A consumer that has settled nothing yet has only a lock file.
        if path
            .extension()
            .is_some_and(|it| it == "json" || it == "lock")
        {
            watermarks.push(read_watermark(&path.with_extension("json")));
        }
    }
    Ok(watermarks)
}

/// Removes the segments that all registered consumers have settled to the end and that no writer
/// has open. Returns the number of removed segments. Removes nothing without a registered consumer.
///
/// A consumer is registered when a reader is opened with its name, until its files are removed from
/// `consumers/`. The newest segment is removed only while no writer has the folder open.
///
/// # Errors
///
/// The folder cannot be read, or a segment cannot be removed.
pub fn remove_consumed(folder: &Path) -> io::Result<u64> {
    let positions = watermarks(folder)?.into_iter().map(|it| it.position);
    let Some(settled) = positions.min() else {
        return Ok(0);
    };
    let mut removed = remove_settled(folder, settled, false)?;
    let lock_file = folder.join(LOCK_FILE);
    // The lock keeps writers out until the newest segment is removed.
    if lock_file.exists() && !FileLock::is_held(&lock_file) {
        match FileLock::acquire(&lock_file) {
            Ok(_lock) => removed += remove_settled(folder, settled, true)?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    if removed > 0 {
        sync_folder(folder)?;
    }
    Ok(removed)
}

/// Removes the segments before this position; the newest segment only if `newest_too` is set.
/// Returns the number of removed segments.
fn remove_settled(folder: &Path, settled: Position, newest_too: bool) -> io::Result<u64> {
    let mut segments = list_segments(folder)?;
    if !newest_too {
        segments.pop();
    }
    let mut removed = 0;
    for segment in segments {
        let holds_chunks = segment.bytes > SEGMENT_HEADER_BYTES as u64;
        let end = Position {
            segment: segment.first_chunk,
            offset: segment.bytes,
        };
        if segment.first_chunk < settled.segment || (holds_chunks && end <= settled) {
            let path = folder.join(segment_name(segment.first_chunk));
            // Another process may have removed it.
            removed += u64::from(if_found(fs::remove_file(path))?.is_some());
        }
    }
    Ok(removed)
}

/// Chunks that a consumer has not settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// The number after the last chunk that the consumer has settled or skipped.
    pub first_chunk: u64,
    /// The number of chunks.
    pub chunks: u64,
    /// The records in these chunks, as the frames state them.
    pub records: u64,
    /// The bytes of these chunks, without the frames.
    pub bytes: u64,
}

/// Counts the chunks that a consumer has not settled, from the headers of the frames.
///
/// # Errors
///
/// The folder or a segment cannot be read. A folder that does not exist has no backlog.
pub fn backlog(folder: &Path, name: &ConsumerName) -> io::Result<Backlog> {
    let path = folder.join(CONSUMERS_FOLDER);
    let watermark = read_watermark(&path.join(format!("{}.json", name.as_str())));
    let from = watermark.position;
    let mut backlog = Backlog {
        first_chunk: watermark.next_chunk,
        ..Backlog::default()
    };
    for segment in if_found(list_segments(folder))?.into_iter().flatten() {
        let offset = match segment.first_chunk == from.segment {
            true => from.offset,
            false if segment.first_chunk < from.segment => continue,
            false => 0,
        };
        for_each_frame(folder, &segment, offset, Tail::Final, |header, _| {
            backlog.chunks += 1;
            backlog.records += header.meta.map_or(0, |meta| u64::from(meta.records));
            backlog.bytes += u64::from(header.length);
            true
        })?;
    }
    Ok(backlog)
}

#[cfg(test)]
mod tests;
