//! Reads the files of the language, also those below folders.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::{MAX_BYTES, Source};

/// The most files below folders.
const MAX_FILES: usize = 1_000;

/// A file that was read.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// Its path.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl TextFile {
    /// Returns the file as [`read`](crate::read) takes it.
    pub fn source(&self) -> Source<'_> {
        Source {
            name: &self.name,
            text: &self.text,
        }
    }
}

/// Returns the paths that are files, and the files `*.irl` below those that are folders, sorted.
/// Does not follow links below folders. A file that is named twice is returned once.
///
/// # Errors
///
/// A folder cannot be read, or has no such file, or too many.
pub fn find_files<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<PathBuf>, FileError> {
    let mut files = Vec::new();
    for path in paths.iter().map(AsRef::as_ref) {
        let mut found = Vec::new();
        if path.is_dir() {
            find(path, &mut found)?;
            found.sort();
            if found.is_empty() {
                return Err(FileError::NoFile(path.to_owned()));
            }
        } else {
            found.push(path.to_owned());
        }
        found.retain(|it| !files.contains(it));
        files.extend(found);
    }
    Ok(files)
}

/// Reads a file. Reads no more than the language allows.
///
/// # Errors
///
/// The file cannot be read, or is not UTF-8.
pub fn read_file(path: &Path) -> Result<TextFile, FileError> {
    read_up_to(path, MAX_BYTES)
}

/// Reads the files that [`find_files`] finds. Reads no more than the language allows.
///
/// # Errors
///
/// A file or folder cannot be read, a file is not UTF-8, or a folder has no file or too many.
pub fn read_files<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<TextFile>, FileError> {
    let mut left = MAX_BYTES;
    let mut files = Vec::new();
    for path in find_files(paths)? {
        let file = read_up_to(&path, left)?;
        // The last file may be one byte longer than what is left.
        left = left.saturating_sub(file.text.len());
        files.push(file);
    }
    Ok(files)
}

/// Reads one byte more than the limit, so that the file is found to be too large.
fn read_up_to(path: &Path, limit: usize) -> Result<TextFile, FileError> {
    let failed = |error| FileError::Io(path.to_owned(), error);
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(failed)?.take(limit as u64 + 1);
    file.read_to_end(&mut bytes).map_err(failed)?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // The limit may cut a character. The file is too large then, which is said elsewhere.
        Err(error) if file.limit() == 0 && error.utf8_error().error_len().is_none() => {
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            return Err(FileError::NotText(path.to_owned(), valid));
        }
    };
    Ok(TextFile {
        name: path.display().to_string(),
        text,
    })
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), FileError> {
    let failed = |error| FileError::Io(folder.to_owned(), error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let path = entry.path();
        if kind.is_dir() {
            find(&path, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|it| it == "irl") {
            files.push(path);
        }
        if files.len() > MAX_FILES {
            return Err(FileError::TooManyFiles(folder.to_owned()));
        }
    }
    Ok(())
}

/// Files cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system refuses a file or folder.
    Io(PathBuf, io::Error),
    /// There is no file `*.irl` below the folder.
    NoFile(PathBuf),
    /// The file is not UTF-8 from this byte on.
    NotText(PathBuf, usize),
    /// There are more files below the folder than are read.
    TooManyFiles(PathBuf),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "cannot open {}: {error}", path.display()),
            Self::NoFile(path) => write!(f, "there is no file *.irl below {}", path.display()),
            Self::NotText(path, valid) => {
                write!(f, "{} is not UTF-8 from byte {valid} on", path.display())
            }
            Self::TooManyFiles(path) => {
                let path = path.display();
                write!(
                    f,
                    "there are more than {MAX_FILES} files *.irl below {path}"
                )
            }
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            _ => None,
        }
    }
}
