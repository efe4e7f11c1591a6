//! Errors of a log, and their places.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::UnreadLog;

/// A log cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The operating system refuses.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Its error.
        source: io::Error,
    },
    /// A line is wrong, and the settings say to stop there.
    #[error(transparent)]
    Line(#[from] BadLine),
    /// The folder has no map.
    #[error("{}: there is no kieker.map in this folder{}", folder.display(), nearest(near.as_deref()))]
    NoMap {
        /// The folder.
        folder: PathBuf,
        /// A folder in it that has one.
        near: Option<PathBuf>,
    },
    /// The folder has compressed or binary logs only.
    #[error("{}: no text log in this folder: {first}{}", folder.display(), others(*files))]
    NoTextLog {
        /// The folder.
        folder: PathBuf,
        /// How many compressed and binary files it has.
        files: usize,
        /// One of them, with advice.
        first: UnreadLog,
    },
    /// The folder has no log at all.
    #[error("{}: there is no kieker*.dat or tpmon*.dat in this folder", folder.display())]
    NoLog {
        /// The folder.
        folder: PathBuf,
    },
}

impl LogError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

fn nearest(near: Option<&Path>) -> String {
    near.map_or_else(String::new, |near| {
        format!("; did you mean {}?", near.display())
    })
}

fn others(files: usize) -> String {
    match files {
        0 | 1 => String::new(),
        files => format!(" (and so on; {files} files)"),
    }
}

/// A line of the map, or a record, that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// The file.
    pub file: Arc<Path>,
    /// The number of the line, from 1.
    pub line: u64,
    /// The column in the line, in characters from 1.
    pub column: usize,
    /// The record's field that was being read.
    pub field: Option<Box<str>>,
    /// The problem.
    pub problem: Problem,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file.display(), self.line, self.column)?;
        if let Some(field) = &self.field {
            write!(f, "field {field}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for BadLine {}

/// The problem of a line: its message, and the name of its kind.
///
/// A message shows at most [`Problem::SHOWN_CHARS`] of a text of the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    reason: &'static str,
    message: Box<str>,
}

impl Problem {
    /// How many characters of the log a message shows at most.
    pub const SHOWN_CHARS: usize = 200;

    pub(super) fn new(reason: &'static str, message: impl Into<Box<str>>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    /// A line is longer than the limit, with the lines that continue it.
    pub(super) fn too_long(limit: usize) -> Self {
        let message =
            format!("the line is longer than {limit} bytes, with the lines up to the next $");
        Self::new("too_long", message)
    }

    pub(super) fn not_utf8() -> Self {
        Self::new("not_utf8", "the line is not UTF-8")
    }

    pub(super) fn class_number(found: &str) -> Self {
        let message = format!("{:?} is not the number of a class", Self::shown(found));
        Self::new("class_number", message)
    }

    /// The first characters of a text of the log.
    pub(super) fn shown(text: &str) -> Box<str> {
        match text.char_indices().nth(Self::SHOWN_CHARS) {
            Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()).into(),
            None => text.into(),
        }
    }

    /// The name of the problem's kind, in tables and JSON.
    pub const fn reason(&self) -> &'static str {
        self.reason
    }
}
