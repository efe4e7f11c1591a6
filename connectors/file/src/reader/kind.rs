//! What a path leads to.

use std::io::{self, Read as _};
use std::path::Path;

use crate::segment::SEGMENT_MAGIC;

/// What there is to read.
pub(super) enum Kind {
    Folder,
    Segment,
    Plain,
}

/// What a path is. A follower may come before the folder that it follows.
pub(super) fn kind_of(path: &Path, follow: bool) -> io::Result<Kind> {
    let metadata = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && follow => return Ok(Kind::Folder),
        metadata => metadata?,
    };
    if metadata.is_dir() {
        return Ok(Kind::Folder);
    }
    let mut magic = Vec::with_capacity(SEGMENT_MAGIC.len());
    let limit = SEGMENT_MAGIC.len() as u64;
    std::fs::File::open(path)?
        .take(limit)
        .read_to_end(&mut magic)?;
    // A segment whose magic is damaged is still one by its name.
    let name = path.file_name().and_then(|name| name.to_str());
    let is_named = name.and_then(crate::folder::parse_segment_name).is_some();
    Ok(match is_named || magic == SEGMENT_MAGIC {
        true => Kind::Segment,
        false => Kind::Plain,
    })
}
