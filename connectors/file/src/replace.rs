//! Files that are replaced as a whole, durably, and without following planted links.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::FileLock;

/// Replaces a file atomically and durably: a reader sees the old bytes or the new bytes.
///
/// - The new bytes are written to a new file beside it, `PATH.PROCESS.part`, which is renamed.
/// - It keeps the permissions of the old file.
/// - A device or a pipe (`/dev/stdout`) is written as it is, never replaced.
/// - A symlink is followed if it belongs to this user or to root. One of another user is refused:
///   it may have been planted to have a file of this user replaced.
///
/// # Errors
///
/// The file cannot be written, or it is a symlink of another user. The old file is still there.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let link = if_found(fs::symlink_metadata(path))?.filter(Metadata::is_symlink);
    if link.as_ref().is_some_and(is_of_another_user) {
        let message = "it is a symlink of another user; name the file that it leads to";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let target = if_found(fs::metadata(path))?;
    if target.as_ref().is_some_and(|it| !it.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let path = match link {
        Some(_) => &fs::canonicalize(path)?,
        None => path,
    };
    let part = beside(path, &format!(".{}.part", std::process::id()));
    let mut file = new_file(&part)?;
    // Before the content, which others may not have been allowed to read.
    let permissions = target.map_or(Ok(()), |it| file.set_permissions(it.permissions()));
    permissions
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| {
            // Only the first error is returned. The next call replaces a file that stays.
            fs::remove_file(&part).ok();
        })?;
    sync_folder(folder_of(path))
}

/// Creates a new file in place of any other with its name. Follows no link that was planted there.
///
/// # Errors
///
/// The operating system refuses.
pub fn new_file(path: &Path) -> io::Result<File> {
    if_found(fs::remove_file(path))?;
    File::create_new(path)
}

/// Forces a folder's entries to stable storage. Only then does the creation, renaming or removal of
/// a file survive a crash of the machine.
///
/// # Errors
///
/// The operating system refuses.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // Other systems cannot open a folder as a file, and need not.
    if cfg!(not(unix)) {
        return Ok(());
    }
    match File::open(folder)?.sync_all() {
        // Some network file systems do not support this (CIFS).
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Returns the result of a call on a file, or nothing if there is no such file.
///
/// # Errors
///
/// The call failed for another reason.
pub fn if_found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    parent.unwrap_or_else(|| Path::new("."))
}

/// Returns the path of a file beside this one: the same name with this ending appended.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Locks a file beside this one, which may be replaced.
///
/// # Errors
///
/// Another reader has it, or it is not an ordinary file.
pub fn lock_beside(path: &Path) -> io::Result<FileLock> {
    let path = beside(path, ".lock");
    check_file(&path)?;
    FileLock::acquire(&path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(error.kind(), "another reader has it"),
        _ => error,
    })
}

/// Opens an ordinary file. It neither follows a symlink nor waits for the other end of a pipe.
///
/// # Errors
///
/// It cannot be opened, or it is not an ordinary file.
pub fn open_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    check_file(path)?;
    let file = open_at_once(options, path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(not_a_file(path)),
    }
}

/// Opens a file, neither through a symlink nor with a wait for the other end of a pipe.
pub(crate) fn open_at_once(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.custom_flags(flags.bits() as i32);
    }
    options.open(path)
}

/// Refuses a path that exists and is not an ordinary file.
///
/// # Errors
///
/// It is a symlink, a device or a folder.
pub fn check_file(path: &Path) -> io::Result<()> {
    match if_found(fs::symlink_metadata(path))? {
        Some(metadata) if !metadata.is_file() => Err(not_a_file(path)),
        _ => Ok(()),
    }
}

fn not_a_file(path: &Path) -> io::Error {
    let message = format!(
        "{} is a symlink, a device or a folder; name an ordinary file, or one that is not there",
        path.display()
    );
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

#[cfg(unix)]
fn is_of_another_user(link: &Metadata) -> bool {
    ![0, rustix::process::geteuid().as_raw()].contains(&link.uid())
}

/// Returns false: files have no owner to compare.
#[cfg(not(unix))]
fn is_of_another_user(_link: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests;
