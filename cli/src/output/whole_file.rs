//! Files that are written whole or not at all, and that never replace what is not theirs.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// Writes a file under another name and renames it: whoever sees it sees it complete.
///
/// - A device, a pipe or `/dev/stdout` is written as it is, never replaced.
/// - A symlink is followed if it belongs to this user or to root. One of another user is refused:
///   it may have been planted to have a file of this user replaced.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn whole_file(path: &Path, text: &str) -> Result<(), Failure> {
    write(path, text).map_err(|error| Failure::output(path.display(), &error))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let link = present(fs::symlink_metadata(path))?.filter(Metadata::is_symlink);
    if let Some(link) = &link {
        let user = rustix::process::geteuid().as_raw();
        if link.uid() != 0 && link.uid() != user {
            let message = "it is a symlink of another user; name the file that it leads to";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
    }
    let target = present(fs::metadata(path))?;
    if target.is_some_and(|it| !it.is_file()) {
        let mut device = OpenOptions::new().write(true).open(path)?;
        return device.write_all(text.as_bytes());
    }
    let path = match link {
        Some(_) => &fs::canonicalize(path)?,
        None => path,
    };
    let (part, mut file) = part(path)?;
    let written = file.write_all(text.as_bytes());
    written
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| {
            // Only the first error is returned. The next run replaces a file that stays.
            fs::remove_file(&part).ok();
        })
}

/// A new file beside this one, with a name of this process.
fn part(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(name);
    // A process with this number may have been killed. Removing a symlink leaves what it leads to.
    if let Err(error) = fs::remove_file(&part)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let file = File::create_new(&part)?;
    Ok((part, file))
}

/// Nothing if there is no such file.
fn present(metadata: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    match metadata {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
