//! The folder of segments: the names of its files, and functions that list and make it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{folder_of, if_found, sync_folder};

/// The sub-folder for damaged bytes that were moved aside.
pub const DAMAGED_FOLDER: &str = "damaged";
/// The sub-folder with the positions of named consumers.
pub const CONSUMERS_FOLDER: &str = "consumers";
/// The file that a writer locks while it is open.
pub const LOCK_FILE: &str = "writer.lock";

/// The extensions of files with one or more chunks: saved by hand, in a quarantine, or by Kieker.
const CHUNK_EXTENSIONS: [&str; 4] = ["balr", "bin", "chunk", "kika"];

const PREFIX: &str = "chunks-";
const SUFFIX: &str = ".seg";

/// Returns the name of the segment whose first chunk has this number.
pub fn segment_name(first_chunk: u64) -> String {
    format!("{PREFIX}{first_chunk:020}{SUFFIX}")
}

/// Returns the number in a segment's name; none if the name is no segment's.
pub fn parse_segment_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let canonical = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    canonical.then(|| digits.parse().ok()).flatten()
}

/// Returns the chunk files of a folder, sorted by name. A folder of segments has none.
///
/// # Errors
///
/// The folder cannot be read.
pub fn chunk_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.and_then(parse_segment_name).is_some() {
            return Ok(Vec::new());
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        if extension.is_some_and(|it| CHUNK_EXTENSIONS.contains(&it)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A segment in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentEntry {
    pub(crate) first_chunk: u64,
    pub(crate) bytes: u64,
}

/// Lists the folder's segments, oldest first. Ignores other files.
pub(crate) fn list_segments(folder: &Path) -> io::Result<Vec<SegmentEntry>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(first_chunk) = name.to_str().and_then(parse_segment_name) else {
            continue;
        };
        // Another process may have removed it between the two calls.
        let metadata = if_found(entry.metadata())?;
        if let Some(metadata) = metadata.filter(|it| it.is_file()) {
            let bytes = metadata.len();
            segments.push(SegmentEntry { first_chunk, bytes });
        }
    }
    segments.sort_by_key(|segment| segment.first_chunk);
    Ok(segments)
}

/// Makes a folder with its parents, durably.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    sync_folder(folder_of(folder))
}

/// Returns a free path in the folder of damaged bytes.
pub(crate) fn damaged_path(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let damaged = folder.join(DAMAGED_FOLDER);
    make_folder(&damaged)?;
    (0..10_000_u32)
        .map(|copy| match copy {
            0 => damaged.join(name),
            _ => damaged.join(format!("{name}.{copy}")),
        })
        .find(|path| !path.exists())
        .ok_or_else(|| io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests;
