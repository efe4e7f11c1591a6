//! Settings of writer and reader, with their defaults and the reasons for them.

use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use baler_common::non_zero;
use baler_common::transport::uri::{Uri, UriError, set};

use crate::segments::consumers::{ConsumerName, Position};

/// When chunks are forced to stable storage. This decides when they are confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncPolicy {
    /// Before each confirmation. All chunks that wait at that moment share one call (group commit).
    /// A confirmed chunk survives a crash of the machine.
    #[default]
    Chunk,
    /// Never. A chunk is confirmed when the operating system has it. It survives a crash of the
    /// process, not a crash of the machine.
    None,
}

/// The reaction when a folder has reached `max_total_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FullPolicy {
    /// The oldest segment is removed and counted, whether it was read or not.
    DropOldest,
    /// The writer breaks with a retryable error until there is room again. Nothing is lost here.
    #[default]
    Refuse,
}

/// The treatment of segments that all registered consumers have settled to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// They stay until a person or another program removes them.
    #[default]
    All,
    /// A reader with a consumer's name removes them once the writer has finished them; see
    /// [`remove_consumed`](crate::remove_consumed).
    Consumed,
}

/// Settings of a [`FileWriter`](crate::FileWriter).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileWriterConfig {
    /// The folder. It is made if it is missing.
    pub folder: PathBuf,
    /// The size at which a segment is finished: a chunk that would exceed it begins the next
    /// segment. Default 128 MiB, as in Vector's disk buffer: few files, and a scan after a crash
    /// takes a fraction of a second.
    pub segment_bytes: NonZeroU64,
    /// The age at which a segment is finished before the next chunk is written. Default 1 hour: a
    /// segment that is moved away or removed then holds the chunks of at most one hour.
    pub segment_age: Duration,
    /// When chunks are forced to stable storage. Default [`SyncPolicy::Chunk`]: it gives the
    /// strongest confirmation, and group commit makes it cheap enough.
    pub sync: SyncPolicy,
    /// The most bytes of all segments together. Default none: the disk is the limit.
    pub max_total_bytes: Option<NonZeroU64>,
    /// The reaction at this limit. Default [`FullPolicy::Refuse`].
    pub full: FullPolicy,
    /// The largest chunk. Default 16 MiB, as for all media of Baler without a limit of their own.
    pub max_chunk_bytes: NonZeroUsize,
    /// The most chunks that may be offered and not yet confirmed. Default 256: forcing data to disk
    /// costs the same for one chunk as for all that wait, and `window_bytes` bounds the memory.
    pub window_chunks: NonZeroUsize,
    /// The most bytes that may be offered and not yet confirmed. Default 64 MiB.
    pub window_bytes: NonZeroUsize,
}

impl FileWriterConfig {
    /// Returns the defaults for this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            segment_bytes: non_zero!(128 << 20),
            segment_age: Duration::from_secs(3_600),
            sync: SyncPolicy::default(),
            max_total_bytes: None,
            full: FullPolicy::default(),
            max_chunk_bytes: non_zero!(16 << 20),
            window_chunks: non_zero!(256),
            window_bytes: non_zero!(64 << 20),
        }
    }

    /// Reads the settings from `file:///folder?...`; README.md lists them.
    ///
    /// # Errors
    ///
    /// The URI names no folder or a host, or a setting is unknown or wrong.
    pub fn from_uri(mut uri: Uri) -> Result<Self, UriError> {
        let mut config = Self::new(path(&uri)?);
        let syncs = [("chunk", SyncPolicy::Chunk), ("none", SyncPolicy::None)];
        set(&mut config.sync, uri.take_choice("fsync", &syncs)?);
        let policies = [
            ("drop-oldest", FullPolicy::DropOldest),
            ("refuse", FullPolicy::Refuse),
        ];
        let segment_bytes = uri.take_bytes_in("segment_bytes")?;
        set(&mut config.segment_bytes, segment_bytes);
        set(&mut config.segment_age, uri.take_duration("segment_age")?);
        config.max_total_bytes = uri.take_bytes_in("max_total_bytes")?;
        set(&mut config.full, uri.take_choice("full", &policies)?);
        let max_chunk_bytes = uri.take_bytes_in("max_chunk_bytes")?;
        set(&mut config.max_chunk_bytes, max_chunk_bytes);
        set(&mut config.window_chunks, uri.take_number("window_chunks")?);
        set(&mut config.window_bytes, uri.take_bytes_in("window_bytes")?);
        uri.finish()?;
        Ok(config)
    }
}

fn path(uri: &Uri) -> Result<PathBuf, UriError> {
    uri.no_host()?;
    match uri.path() {
        "" => Err(uri.missing_in_path("a folder")),
        path => Ok(path.into()),
    }
}

/// The place where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// At the oldest chunk.
    #[default]
    Oldest,
    /// After the newest chunk at the time when the reader is opened.
    End,
    /// At this position; if its segment is gone, at the oldest chunk after it.
    Position(Position),
}

impl Start {
    const EXPECTED: &'static str = "start, end or SEGMENT:OFFSET";
}

impl FromStr for Start {
    type Err = ParseStartError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || match text {
            "start" => Some(Self::Oldest),
            "end" => Some(Self::End),
            _ => {
                let (segment, offset) = text.split_once(':')?;
                Some(Self::Position(Position {
                    segment: segment.parse().ok()?,
                    offset: offset.parse().ok()?,
                }))
            }
        };
        parse().ok_or_else(|| ParseStartError(text.into()))
    }
}

/// The text names no place at which a reader can begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not {expected}", expected = Start::EXPECTED)]
pub struct ParseStartError(Box<str>);

/// Settings of a [`FileReader`](crate::FileReader).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileReaderConfig {
    /// A folder, a single segment, or a plain file of chunks.
    pub path: PathBuf,
    /// Where to begin. Default: at the oldest chunk. A consumer with a position begins there.
    pub from: Start,
    /// The only chunks of the folder to read, by their numbers; the end is excluded. The reader ends
    /// after them, and cannot be opened if the folder lacks some of them. Default none: all from
    /// `from` on.
    pub chunks: Option<Range<u64>>,
    /// Whether to wait for more chunks at the end. Default no: the reader ends.
    pub follow: bool,
    /// The name under which the folder remembers the settled position. Default none.
    pub consumer: Option<ConsumerName>,
    /// How long a consumer's position may lag behind the settlements. After a crash the chunks of
    /// that time come again. Default 1 second, because a write costs two calls of fsync. 0 writes
    /// at each settlement. Closing always writes the position.
    pub commit_interval: Duration,
    /// The treatment of segments that all consumers have settled. A reader with a consumer's name
    /// checks them when its position passes into another segment, and when it closes. Default
    /// [`Keep::All`].
    pub keep: Keep,
    /// The largest chunk that is handed out; a larger one counts as damage. Default 64 MiB, as the
    /// decoder's limit.
    pub max_chunk_bytes: NonZeroUsize,
}

impl FileReaderConfig {
    /// Returns the defaults for this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            from: Start::default(),
            chunks: None,
            follow: false,
            consumer: None,
            commit_interval: Duration::from_secs(1),
            keep: Keep::default(),
            max_chunk_bytes: non_zero!(64 << 20),
        }
    }

    /// Reads the settings from `file:///path?...`; README.md lists them.
    ///
    /// # Errors
    ///
    /// The URI names no path or a host, or a setting is unknown or wrong.
    pub fn from_uri(mut uri: Uri) -> Result<Self, UriError> {
        let mut config = Self::new(path(&uri)?);
        let from = uri.take_with("from", Start::EXPECTED, |text| text.parse().ok())?;
        set(&mut config.from, from);
        set(&mut config.follow, uri.take_bool("follow")?);
        let parse = |text: &str| text.parse().ok();
        config.consumer = uri.take_with("consumer", ConsumerName::EXPECTED, parse)?;
        let commit_interval = uri.take_duration("commit_interval")?;
        set(&mut config.commit_interval, commit_interval);
        let keep = [("all", Keep::All), ("consumed", Keep::Consumed)];
        set(&mut config.keep, uri.take_choice("keep", &keep)?);
        let max_chunk_bytes = uri.take_bytes_in("max_chunk_bytes")?;
        set(&mut config.max_chunk_bytes, max_chunk_bytes);
        uri.finish()?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests;
