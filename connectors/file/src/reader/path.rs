//! The kinds of paths that are read, and all chunks of one.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use baler_common::transport::{
    ChunkReader as _, Damaged, Delivery, Received, TransportError, Verdict,
};

use super::FileReader;
use crate::client::parse_segment_name;
use crate::config::FileReaderConfig;
use crate::headers::SEGMENT_MAGIC;

/// The kinds of paths that a reader reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    Folder,
    /// A file of chunks without segments around them.
    Plain,
    Segment,
}

impl PathKind {
    /// Finds out the kind of a path. A follower may come before the folder that it follows.
    pub(super) fn of(path: &Path, follow: bool) -> io::Result<Self> {
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && follow => {
                return Ok(Self::Folder);
            }
            metadata => metadata?,
        };
        if metadata.is_dir() {
            return Ok(Self::Folder);
        }
        let mut magic = Vec::with_capacity(SEGMENT_MAGIC.len());
        let limit = SEGMENT_MAGIC.len() as u64;
        File::open(path)?.take(limit).read_to_end(&mut magic)?;
        // A segment whose magic is damaged is still one by its name.
        let name = path.file_name().and_then(|name| name.to_str());
        let is_named = name.and_then(parse_segment_name).is_some();
        Ok(match is_named || magic == SEGMENT_MAGIC {
            true => Self::Segment,
            false => Self::Plain,
        })
    }
}

/// A part of a path that was read.
#[derive(Debug)]
pub enum PathItem {
    /// A chunk, with its place.
    Chunk(Delivery),
    /// Bytes that are none.
    Damaged(Damaged),
}

/// Reads all chunks of a folder of segments, of one segment, or of a plain file, which may be one
/// chunk or several native ones. Ends after the first error.
///
/// # Errors
///
/// The path cannot be opened.
pub fn read_path(
    path: impl Into<PathBuf>,
) -> Result<impl Iterator<Item = Result<PathItem, TransportError>>, TransportError> {
    let mut reader = FileReader::open(FileReaderConfig::new(path))?;
    let mut next = move || {
        loop {
            match reader.receive(Instant::now())? {
                Received::Chunk(delivery) => {
                    reader.settle(delivery.token, Verdict::Ack)?;
                    return Ok(Some(PathItem::Chunk(delivery)));
                }
                Received::Damaged(damaged) => return Ok(Some(PathItem::Damaged(damaged))),
                Received::End => return Ok(None),
                Received::Assigned { .. } | Received::Revoked { .. } | Received::Idle => {}
            }
        }
    };
    let mut has_failed = false;
    Ok(std::iter::from_fn(move || {
        let item = if has_failed { None } else { next().transpose() };
        has_failed |= matches!(item, Some(Err(_)));
        item
    }))
}
