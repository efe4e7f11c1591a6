//! One file of a log.

use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;

use baler_common::record::DynamicRecord;

use super::error::{BadLine, Problem};
use super::line::{LineError, parse};
use super::lines::{Line, Lines};
use super::map::LogMap;

/// Reads the records of one `.dat` file, line by line.
#[derive(Debug)]
pub struct DatReader<R> {
    file: Arc<Path>,
    map: Arc<LogMap>,
    lines: Lines<R>,
    line_bytes: usize,
    line: u64,
}

/// The next record of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DatError {
    /// The line is wrong; the next one can be read.
    #[error(transparent)]
    Line(#[from] BadLine),
    /// The file cannot be read further.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl<R: BufRead> DatReader<R> {
    /// A reader of the file with this name, whose lines have at most `line_bytes` bytes.
    pub fn new(file: Arc<Path>, input: R, map: Arc<LogMap>, line_bytes: usize) -> Self {
        Self {
            file,
            map,
            lines: Lines::new(input, line_bytes),
            line_bytes,
            line: 0,
        }
    }

    /// The record in the next line that is not empty; `None` at the end.
    ///
    /// A last line without an end is one too.
    ///
    /// # Errors
    ///
    /// [`DatError::Line`] for a wrong line: the next call goes on behind it.
    pub fn next_record(&mut self) -> Result<Option<DynamicRecord>, DatError> {
        while let Some(line) = self.lines.next_line()? {
            self.line = self.line.saturating_add(1);
            let (text, result) = match line {
                Line::Whole(b"") => continue,
                Line::Whole(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) => (text, parse(text, &self.map)),
                    Err(error) => {
                        let (valid, _) = bytes
                            .split_at_checked(error.valid_up_to())
                            .unwrap_or_default();
                        let text = std::str::from_utf8(valid).unwrap_or_default();
                        (text, Err(LineError::new(text.len(), Problem::NotUtf8)))
                    }
                },
                Line::TooLong => {
                    let limit = self.line_bytes;
                    ("", Err(LineError::new(0, Problem::TooLong { limit })))
                }
            };
            return match result {
                Ok(record) => Ok(Some(record)),
                Err(error) => {
                    let before = text.get(..error.at.min(text.len())).unwrap_or_default();
                    Err(DatError::Line(BadLine {
                        file: Arc::clone(&self.file),
                        line: self.line,
                        column: before.chars().count().saturating_add(1),
                        field: error.field,
                        problem: error.problem,
                    }))
                }
            };
        }
        Ok(None)
    }
}
