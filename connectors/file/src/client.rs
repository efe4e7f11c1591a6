//! The folder: the names of its files, how they are replaced, and how its entries become durable.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt as _;
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
    if cfg!(not(unix)) {
        return Ok(());
    }
    match File::open(folder)?.sync_all() {
        // Some network file systems cannot do it (CIFS).
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
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
///
/// - The new bytes are written to a new file beside it, `PATH.PROCESS.part`, which is renamed.
/// - A device or a pipe (`/dev/stdout`) is written as it is, never replaced.
/// - A symlink is followed if it belongs to this user or to root. One of another user is refused:
///   it may have been planted to have a file of this user replaced.
///
/// # Errors
///
/// The file cannot be written, or it is a symlink of another user. The old file is still there.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let link = present(fs::symlink_metadata(path))?.filter(Metadata::is_symlink);
    if link.as_ref().is_some_and(is_of_another_user) {
        let message = "it is a symlink of another user; name the file that it leads to";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let target = present(fs::metadata(path))?;
    if target.is_some_and(|it| !it.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let path = match link {
        Some(_) => &fs::canonicalize(path)?,
        None => path,
    };
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let mut file = new_file(&part)?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| {
            // Only the first error is returned. The next call replaces a file that stays.
            fs::remove_file(&part).ok();
        })?;
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    sync_folder(folder.unwrap_or_else(|| Path::new(".")))
}

/// Makes a file anew, whatever had its name: no link that somebody planted there is followed.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

#[cfg(unix)]
fn is_of_another_user(link: &Metadata) -> bool {
    ![0, rustix::process::geteuid().as_raw()].contains(&link.uid())
}

/// Files have no owner that could be compared.
#[cfg(not(unix))]
fn is_of_another_user(_link: &Metadata) -> bool {
    false
}

/// Nothing if there is no such file.
fn present(metadata: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    match metadata {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
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
mod tests;
