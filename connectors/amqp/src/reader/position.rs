//! How far a stream is settled, and the file with that position: RabbitMQ keeps no positions of
//! AMQP 0.9.1 consumers.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use baler_common::transport::{Failure, SettledPrefix};
use baler_connector_file::{
    FileLock, beside, check_file, folder_of, if_found, lock_beside, new_file, open_file,
    sync_folder,
};

use super::landmark::Landmark;
use crate::config::Start;

/// How far a stream is settled.
///
/// A stream numbers its messages (RabbitMQ's `x-stream-offset`). The watermark never passes an
/// unsettled message.
#[derive(Debug, Default)]
pub(super) struct StreamPosition {
    /// All messages below it are settled. It is unknown before the first delivery, unless a file has
    /// it.
    watermark: Option<u64>,
    /// The message before the watermark, if it is known.
    landmark: Option<Landmark>,
    /// The CRC-32C of each delivered message from the watermark on, by its number.
    delivered: SettledPrefix<u64, u32>,
    /// The highest number that was ever delivered.
    highest: Option<u64>,
    /// Whether the reader begins with the oldest message that the stream has.
    begins_first: bool,
    /// The stream has removed all messages below, by its limits.
    base: u64,
    /// Whether the watermark moved since it was saved.
    pub(super) is_unsaved: bool,
}

impl StreamPosition {
    /// The position of a reader that begins there.
    pub(super) fn from(start: Start) -> Self {
        let watermark = match start {
            Start::Offset(next) => Some(next),
            _ => None,
        };
        Self {
            watermark,
            begins_first: start == Start::First,
            ..Self::default()
        }
    }

    /// A position that a file has.
    pub(super) fn saved(Saved { next, checksum }: Saved) -> Self {
        let offset = next.checked_sub(1);
        Self {
            landmark: offset
                .zip(checksum)
                .map(|(offset, checksum)| Landmark { offset, checksum }),
            ..Self::from(Start::Offset(next))
        }
    }

    /// The position to save, if it is known.
    pub(super) fn to_save(&self) -> Option<Saved> {
        Some(Saved {
            next: self.watermark?,
            checksum: self.landmark.map(|landmark| landmark.checksum),
        })
    }

    /// A message that tells this stream from another one of the same name.
    pub(super) fn landmark(&self) -> Option<Landmark> {
        self.landmark
    }

    /// The stream was made anew: it is read from its beginning.
    pub(super) fn begin_anew(&mut self) {
        *self = Self::from(Start::First);
    }

    /// Where to begin to read, unless the settings decide.
    pub(super) fn start(&self) -> Option<Start> {
        let first = self.begins_first.then_some(Start::First);
        self.watermark.map(Start::Offset).or(first)
    }

    /// All messages below it are settled.
    #[cfg(test)]
    pub(super) fn watermark(&self) -> Option<u64> {
        self.watermark
    }

    /// Notes a message.
    pub(super) fn arrive(&mut self, offset: u64, checksum: u32) -> Arrival {
        let last = self.delivered.last_mut().map(|(last, _)| last + 1);
        let due = last.or(self.watermark);
        if due.is_some_and(|due| offset < due) {
            return Arrival::Known;
        }
        if due.map_or(self.begins_first, |due| due < offset) {
            self.base = offset;
        }
        self.watermark.get_or_insert(offset);
        self.delivered.insert(offset, checksum);
        let gone = due.map_or(0, |due| offset - due);
        let again = self.highest.is_some_and(|highest| offset <= highest);
        self.highest = self.highest.max(Some(offset));
        Arrival::New { gone, again }
    }

    /// Settles a message.
    pub(super) fn settle(&mut self, offset: u64) {
        self.delivered.settle(&offset);
        while let Some((offset, checksum)) = self.delivered.pop_settled() {
            self.watermark = Some(offset + 1);
            self.landmark = Some(Landmark { offset, checksum });
            self.is_unsaved = true;
        }
    }

    /// How many messages of the stream are not settled, if it holds `messages` in total. The number
    /// is too low if the stream's limits removed messages that the reader never got.
    pub(super) fn lag(&self, messages: u64) -> Option<u64> {
        match self.watermark {
            Some(next) => Some((messages + self.base).saturating_sub(next)),
            None => self.begins_first.then_some(messages),
        }
    }

    /// Forgets the connection: all messages above the watermark come again.
    pub(super) fn reset(&mut self) {
        self.delivered.clear();
    }
}

/// How a delivery fits to the deliveries before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// A delivery before it was lost. An acknowledgement past the gap would lose that message.
    Gap,
    /// It is below the watermark, or a repetition: a stream begins with whole batches.
    Known,
    /// The next one.
    New {
        /// How many messages before it the stream has removed, by its limits.
        gone: u64,
        /// It was delivered before.
        again: bool,
    },
}

/// The content of a file with a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Saved {
    /// The number after the last settled message.
    pub(super) next: u64,
    /// The CRC-32C of the message before it. Files of earlier versions do not have it.
    pub(super) checksum: Option<u32>,
}

/// The file with the position in a stream. One reader at a time has it.
///
/// Each save replaces the file and syncs it. So after a crash it holds the old position or the new
/// one.
///
/// Neither the file nor the files beside it may be a symlink or a device. An attacker who can write
/// to the folder could otherwise lead a reader to any file of its user.
#[derive(Debug)]
pub(super) struct PositionFile {
    path: PathBuf,
    /// The name of the stream.
    stream: Box<str>,
    saved: Option<Saved>,
    /// Locks another file, since each save replaces this one.
    _lock: FileLock,
}

/// The first line of the file.
const MAGIC: &str = "baler-stream-position 1";

/// The longest file that is read: virtual host and queue have names of 255 bytes at most.
const LONGEST: u64 = 4096;

impl PositionFile {
    /// Opens the file for a stream. The file need not exist yet.
    pub(super) fn open(path: &Path, stream: &str) -> Result<Self, Failure> {
        let failed = |error: io::Error| failure(path, &error);
        // Before the lock creates a file beside it.
        check_file(path).map_err(failed)?;
        let lock = lock_beside(path).map_err(failed)?;
        let mut text = String::new();
        let file = if_found(open_file(OpenOptions::new().read(true), path)).map_err(failed)?;
        let saved = match file {
            Some(file) => {
                let mut file = file.take(LONGEST);
                file.read_to_string(&mut text).map_err(failed)?;
                Some(parse(&text, stream).map_err(|what| {
                    let message = format!("position_file {}: {what}", path.display());
                    Failure::last("read from", message)
                })?)
            }
            None => None,
        };
        Ok(Self {
            path: path.into(),
            stream: stream.into(),
            saved,
            _lock: lock,
        })
    }

    /// The position that was saved last.
    pub(super) fn saved(&self) -> Option<Saved> {
        self.saved
    }

    /// Saves a position. It is on disk when this returns.
    pub(super) fn save(&mut self, position: Saved) -> Result<(), Failure> {
        if self.saved == Some(position) {
            return Ok(());
        }
        self.replace(position)
            .map_err(|error| failure(&self.path, &error))?;
        self.saved = Some(position);
        Ok(())
    }

    fn replace(&self, Saved { next, checksum }: Saved) -> io::Result<()> {
        check_file(&self.path)?;
        let new = beside(&self.path, ".new");
        let mut file = new_file(&new)?;
        let mut text = format!("{MAGIC}\nstream {}\nnext {next}\n", self.stream);
        if let Some(checksum) = checksum {
            text.push_str(&format!("before {checksum}\n"));
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        sync_folder(folder_of(&self.path))
    }
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    let message = format!("position_file {}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::InvalidInput => Failure::last("read from", message),
        _ => Failure::retry("read from", message),
    }
}

fn parse(text: &str, stream: &str) -> Result<Saved, String> {
    let mut lines = text.lines();
    if lines.next() != Some(MAGIC) {
        return Err("it holds no position".into());
    }
    let of = lines.next().and_then(|line| line.strip_prefix("stream "));
    let of = of.ok_or("it holds no position")?;
    if of != stream {
        return Err(format!("it holds the position in {of}, not in {stream}"));
    }
    let next = lines.next().and_then(|line| line.strip_prefix("next "));
    let next = next.and_then(|next| next.parse().ok());
    let next = next.ok_or("it holds no position")?;
    let before = lines.next().and_then(|line| line.strip_prefix("before "));
    let checksum = before.and_then(|before| before.parse().ok());
    Ok(Saved { next, checksum })
}
