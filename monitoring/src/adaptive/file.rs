//! The file of patterns: detects changes, and makes the news about it for an operator.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baler_common::number::to_u64;
use baler_connector_kieker::pattern::LineError;

/// A larger file is not read: it cannot be a list of patterns.
const MAX_BYTES: u64 = 1 << 20;

/// A file of patterns and its last known state.
#[derive(Debug)]
pub struct PatternFile {
    path: Arc<Path>,
    /// The text in force.
    text: Option<String>,
    /// A new text, which may not be complete yet.
    candidate: Option<String>,
    /// The last reported reason why it could not be read.
    reported: Option<(ErrorKind, String)>,
}

/// The result of a check of the file.
#[derive(Debug)]
pub enum FileChange {
    /// Nothing new.
    Same,
    /// A new text, which counts only if the next check finds the same.
    Settling,
    /// A new text, in force from now on.
    Changed(String),
    /// A new reason why it cannot be read.
    Failed(io::Error),
}

impl PatternFile {
    /// Names a file, which is not read yet.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path: path.into(),
            text: None,
            candidate: None,
            reported: None,
        }
    }

    /// Returns its path.
    pub fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Checks for a new text. It counts at once if `at_once`, otherwise when a second check finds
    /// the same.
    pub fn check(&mut self, at_once: bool) -> FileChange {
        match self.read() {
            Ok(text) => {
                self.reported = None;
                self.judge(text, at_once)
            }
            Err(error) => {
                self.candidate = None;
                let reported = (error.kind(), error.to_string());
                if self.reported.as_ref() == Some(&reported) {
                    return FileChange::Same;
                }
                self.reported = Some(reported);
                FileChange::Failed(error)
            }
        }
    }

    fn judge(&mut self, text: String, at_once: bool) -> FileChange {
        if self.text.as_ref() == Some(&text) {
            self.candidate = None;
            return FileChange::Same;
        }
        if at_once || self.candidate.as_ref() == Some(&text) {
            self.candidate = None;
            self.text = Some(text.clone());
            return FileChange::Changed(text);
        }
        self.candidate = Some(text);
        FileChange::Settling
    }

    fn read(&self) -> io::Result<String> {
        // Opening a pipe would wait for its other end.
        if !fs::metadata(&self.path)?.is_file() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file"));
        }
        let mut text = String::new();
        let file = File::open(&self.path)?;
        file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        if to_u64(text.len()) > MAX_BYTES {
            let problem = "it is larger than 1 MiB";
            return Err(io::Error::new(ErrorKind::InvalidData, problem));
        }
        Ok(text)
    }
}

/// Something about the file of patterns.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PatternNews {
    /// It was read, at the start or because it changed, and is in force.
    Read {
        /// The file.
        path: Arc<Path>,
        /// The number of patterns.
        rules: usize,
        /// The number of lines that were left out.
        bad_lines: usize,
    },
    /// A line of it is wrong and was left out. The first hundred of a file are reported.
    BadLine {
        /// The file.
        path: Arc<Path>,
        /// The line, and its problem.
        error: LineError,
    },
    /// It cannot be read; the patterns stay as they are. Reported once until the reason changes.
    Unreadable {
        /// The file.
        path: Arc<Path>,
        /// The error.
        error: Arc<io::Error>,
    },
}

impl fmt::Display for PatternNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read {
                path,
                rules,
                bad_lines,
            } => {
                write!(f, "{rules} patterns read from {}", path.display())?;
                match bad_lines {
                    0 => Ok(()),
                    _ => write!(f, ", {bad_lines} lines left out"),
                }
            }
            Self::BadLine { path, error } => write!(f, "{}, {error}", path.display()),
            Self::Unreadable { path, error } => {
                write!(
                    f,
                    "patterns cannot be read from {}: {error}",
                    path.display()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
