//! The kinds of paths that are read.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use crate::client::parse_segment_name;
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
