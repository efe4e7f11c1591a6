//! A named consumer's position: up to where everything is settled.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use baler_common::transport::{RetryClass, TransportError};

use crate::error::{endpoint, io_error};
use crate::folder::{CONSUMERS_FOLDER, damaged_path, make_folder, replace_file};

const EXTENSION: &str = "json";
const LOCK_EXTENSION: &str = "lock";

/// Where something is in a folder. Later positions compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Position {
    /// The number of the segment's first chunk.
    pub segment: u64,
    /// How many bytes into the segment.
    pub offset: u64,
}

/// A consumer's name: 1 to 100 of `a-z A-Z 0-9 . _ -`, not beginning with a dot. It is a file's
/// name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConsumerName(Box<str>);

impl ConsumerName {
    pub(crate) const EXPECTED: &'static str = "1 to 100 letters, digits, '.', '_' or '-'";

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is no consumer's name.
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

/// Up to where everything is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Watermark {
    /// Everything before it is settled.
    pub(crate) position: Position,
    /// The number after the highest that was settled or skipped before the position.
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
        // The form is fixed, so that the checksum is too.
        (watermark.encode() == text).then_some(watermark)
    }
}

/// A named consumer, locked by this reader.
#[derive(Debug)]
pub(crate) struct Consumer {
    path: PathBuf,
    stored: Option<Watermark>,
    /// Why the stored position could not be used, if there was one.
    pub(crate) damaged: Option<Vec<u8>>,
    _lock: File,
}

impl Consumer {
    /// Locks the consumer and reads its position. A position that cannot be read is moved to
    /// `damaged/`: the consumer then begins at the start, which repeats chunks and loses none.
    pub(crate) fn open(folder: &Path, name: &ConsumerName) -> Result<Self, TransportError> {
        let consumers = folder.join(CONSUMERS_FOLDER);
        let path = consumers.join(format!("{}.{EXTENSION}", name.as_str()));
        let fail = |error| io_error("open consumer", &path, error);
        make_folder(&consumers).map_err(fail)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(lock_path(&path))
            .map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(TransportError::new(
                    "open consumer",
                    endpoint(&path),
                    RetryClass::Retry,
                    format!("another reader is the consumer {}", name.as_str()),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        let (stored, damaged) = match fs::read(&path) {
            Ok(bytes) => match str::from_utf8(&bytes).ok().and_then(Watermark::decode) {
                Some(watermark) => (Some(watermark), None),
                None => {
                    let aside = damaged_path(folder, &format!("consumer-{}.bin", name.as_str()));
                    fs::rename(&path, aside.map_err(fail)?).map_err(fail)?;
                    (None, Some(bytes))
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => (None, None),
            Err(error) => return Err(fail(error)),
        };
        Ok(Self {
            path,
            stored,
            damaged,
            _lock: lock,
        })
    }

    /// What is on disk.
    pub(crate) const fn stored(&self) -> Option<Watermark> {
        self.stored
    }

    /// Writes the watermark, durably and at once. Says whether there was anything to write.
    pub(crate) fn store(&mut self, watermark: Watermark) -> Result<bool, TransportError> {
        if self.stored == Some(watermark) {
            return Ok(false);
        }
        replace_file(&self.path, watermark.encode().as_bytes())
            .map_err(|error| io_error("write position to", &self.path, error))?;
        self.stored = Some(watermark);
        Ok(true)
    }
}

/// Where a consumer goes on; the start if it has settled nothing or its position cannot be read.
pub(crate) fn position(folder: &Path, name: &ConsumerName) -> Position {
    let path = folder.join(CONSUMERS_FOLDER).join(name.as_str());
    read_position(&with_extension(&path, EXTENSION))
}

/// The position of the consumer that is furthest behind; none without a consumer.
pub(crate) fn slowest(folder: &Path) -> io::Result<Option<Position>> {
    let entries = match fs::read_dir(folder.join(CONSUMERS_FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut slowest: Option<Position> = None;
    for entry in entries {
        let path = entry?.path();
        // A consumer that has settled nothing yet has only its lock.
        let is_consumer = [EXTENSION, LOCK_EXTENSION]
            .iter()
            .any(|extension| path.extension().is_some_and(|it| it == *extension));
        if is_consumer {
            let position = read_position(&path.with_extension(EXTENSION));
            slowest = Some(slowest.map_or(position, |slowest| slowest.min(position)));
        }
    }
    Ok(slowest)
}

fn read_position(path: &Path) -> Position {
    let text = fs::read_to_string(path).unwrap_or_default();
    Watermark::decode(&text).map_or_else(Position::default, |watermark| watermark.position)
}

/// A consumer's name may have dots: an extension is put behind it, never in place of its last part.
fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(".");
    path.push(extension);
    path.into()
}

fn lock_path(path: &Path) -> PathBuf {
    path.with_extension(LOCK_EXTENSION)
}

/// The highest number that any consumer of the folder has settled, plus one; 0 without consumers.
pub(crate) fn highest_settled(folder: &Path) -> io::Result<u64> {
    let entries = match fs::read_dir(folder.join(CONSUMERS_FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut highest = 0;
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
        {
            // One that cannot be read starts over anyway.
            let text = fs::read_to_string(&path).unwrap_or_default();
            let settled = Watermark::decode(&text).map_or(0, |watermark| watermark.next_chunk);
            highest = highest.max(settled);
        }
    }
    Ok(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WATERMARK: Watermark = Watermark {
        position: Position {
            segment: 12,
            offset: 4_096,
        },
        next_chunk: 99,
    };

    #[test]
    fn position_survives_its_text_and_an_altered_one_is_refused() {
        let text = WATERMARK.encode();
        assert!(text.starts_with(
            "{\"version\":1,\"segment\":12,\"offset\":4096,\"next_chunk\":99,\"crc32c\":"
        ));
        assert_eq!(Watermark::decode(&text), Some(WATERMARK));
        assert_eq!(Watermark::decode(&text.replace("99", "98")), None);
        assert_eq!(Watermark::decode(""), None);
    }

    #[test]
    fn damaged_position_is_moved_aside_and_the_consumer_starts_over() {
        let folder = tempfile::tempdir().unwrap();
        let name: ConsumerName = "tail".parse().unwrap();
        Consumer::open(folder.path(), &name)
            .unwrap()
            .store(WATERMARK)
            .unwrap();
        assert_eq!(highest_settled(folder.path()).unwrap(), 99);
        let path = folder.path().join("consumers/tail.json");
        fs::write(&path, "{\"version\":1,\"seg").unwrap();
        let consumer = Consumer::open(folder.path(), &name).unwrap();
        assert_eq!(consumer.stored(), None);
        assert!(consumer.damaged.is_some());
        assert!(folder.path().join("damaged/consumer-tail.bin").exists());
        drop(consumer);
        assert!(
            Consumer::open(folder.path(), &name)
                .unwrap()
                .damaged
                .is_none()
        );
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["", "..", "a/b", ".hidden", "ä"] {
            assert!(name.parse::<ConsumerName>().is_err(), "{name}");
        }
        assert!("billing-2.eu_west".parse::<ConsumerName>().is_ok());
    }
}
