//! What an operator should hear of about patterns.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use baler_common::pattern::LineError;

/// Something about the file of patterns.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PatternNews {
    /// It was read, at the start or because it changed, and is in force.
    Read {
        /// The file.
        path: Arc<Path>,
        /// How many patterns there are.
        rules: usize,
        /// How many lines were left out.
        bad_lines: usize,
    },
    /// A line of it is wrong and was left out. The first hundred of a file are reported.
    BadLine {
        /// The file.
        path: Arc<Path>,
        /// Which, and why.
        error: LineError,
    },
    /// It cannot be read; the patterns stay as they are. Told once until the reason changes.
    Unreadable {
        /// The file.
        path: Arc<Path>,
        /// Why.
        error: Arc<std::io::Error>,
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
