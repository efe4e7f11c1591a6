//! The folder: the names of its files, and how its entries become durable.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The sub-folder to which damaged bytes are moved.
pub const DAMAGED_FOLDER: &str = "damaged";
/// The sub-folder with the positions of named consumers.
pub const CONSUMERS_FOLDER: &str = "consumers";
/// The file that a writer locks as long as it is open.
pub const LOCK_FILE: &str = "writer.lock";

const PREFIX: &str = "chunks-";
const SUFFIX: &str = ".seg";

/// The name of the segment whose first chunk has this number.
pub fn segment_name(first_chunk: u64) -> String {
    format!("{PREFIX}{first_chunk:020}{SUFFIX}")
}

/// The number in a segment's name, if the name is one.
pub fn parse_segment_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let canonical = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    canonical.then(|| digits.parse().ok()).flatten()
}

/// A segment in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentEntry {
    pub(crate) first_chunk: u64,
    pub(crate) bytes: u64,
}

/// The folder's segments, oldest first. Other files are none of our business.
pub(crate) fn list_segments(folder: &Path) -> io::Result<Vec<SegmentEntry>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(first_chunk) = name.to_str().and_then(parse_segment_name) else {
            continue;
        };
        match entry.metadata() {
            Ok(metadata) if metadata.is_file() => segments.push(SegmentEntry {
                first_chunk,
                bytes: metadata.len(),
            }),
            Ok(_) => {}
            // It was removed between the two calls.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    segments.sort_by_key(|segment| segment.first_chunk);
    Ok(segments)
}

/// Forces a folder's entries to stable storage. Only then does the creation, renaming or removal of a
/// file survive a crash of the machine.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Other systems cannot open a folder as a file, and need not.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Makes a folder with its parents, durably.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => Ok(()),
    }
}

/// Replaces a file at once and durably: a reader sees the old bytes or the new ones.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// A path in the folder of damaged bytes that is not taken yet.
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
mod tests {
    use super::*;

    #[test]
    fn only_canonical_names_are_segments() {
        assert_eq!(parse_segment_name(&segment_name(0)), Some(0));
        assert_eq!(parse_segment_name(&segment_name(u64::MAX)), Some(u64::MAX));
        for name in [
            "chunks-1.seg",
            "chunks-+0000000000000000001.seg",
            "chunks-00000000000000000001.seg.tmp",
            "chunks-99999999999999999999.seg",
            "other",
        ] {
            assert_eq!(parse_segment_name(name), None, "{name}");
        }
    }
}
