//! What is wrong with a file, and where.

use std::io;
use std::path::{Path, PathBuf};

/// A problem at a line of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", file.display())]
pub struct Problem {
    /// The file or folder.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub message: String,
    /// Whether the file or folder could not be read at all.
    pub is_unreadable: bool,
}

impl Problem {
    pub(crate) fn at(file: &Path, line: usize, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            message: message.into(),
            is_unreadable: false,
        }
    }

    pub(crate) fn io(file: &Path, error: &io::Error) -> Self {
        Self {
            is_unreadable: true,
            ..Self::at(file, 1, error.to_string())
        }
    }
}
