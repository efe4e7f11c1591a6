//! Reads one file of a log.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use baler_common::record::DynamicRecord;

use super::error::{BadLine, LogError, Problem};
use super::line::{LineError, parse};
use super::lines::{LineReader, LogLine};
use super::map::LogMap;

/// Reads the records of one `.dat` file, one after the other.
#[derive(Debug)]
pub(super) struct DatReader<R> {
    file: Arc<Path>,
    map: Arc<LogMap>,
    lines: LineReader<R>,
    line_bytes: usize,
    line: u64,
}

impl<R: BufRead> DatReader<R> {
    /// A reader of the file with this name. A record has at most `line_bytes` bytes, with the lines
    /// that continue it.
    pub(super) fn new(file: Arc<Path>, input: R, map: Arc<LogMap>, line_bytes: usize) -> Self {
        Self {
            file,
            map,
            lines: LineReader::new(input, line_bytes),
            line_bytes,
            line: 0,
        }
    }

    /// Reads the next record; `None` at the end. Empty lines before the first record are skipped,
    /// and the last line needs no line end.
    ///
    /// # Errors
    ///
    /// [`LogError::Line`] for a wrong record: the next call continues after it.
    pub(super) fn next_record(&mut self) -> Result<Option<DynamicRecord>, LogError> {
        let file = &self.file;
        while let Some((record, lines)) = self
            .lines
            .next_record()
            .map_err(|source| LogError::io(file, source))?
        {
            let first = self.line.saturating_add(1);
            self.line = self.line.saturating_add(lines);
            let (text, result) = match record {
                LogLine::Whole(b"") => continue,
                LogLine::Whole(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) => (text, parse(text, &self.map)),
                    Err(error) => {
                        let (valid, _) = bytes
                            .split_at_checked(error.valid_up_to())
                            .unwrap_or_default();
                        let text = std::str::from_utf8(valid).unwrap_or_default();
                        (text, Err(LineError::new(text.len(), Problem::not_utf8())))
                    }
                },
                LogLine::TooLong => {
                    let problem = Problem::too_long(self.line_bytes);
                    ("", Err(LineError::new(0, problem)))
                }
            };
            return match result {
                Ok(record) => Ok(Some(record)),
                Err(error) => {
                    let before = text.get(..error.at.min(text.len())).unwrap_or_default();
                    let (lines, column) = position(before);
                    Err(LogError::Line(BadLine {
                        file: Arc::clone(&self.file),
                        line: first.saturating_add(lines),
                        column,
                        field: error.field,
                        problem: error.problem,
                    }))
                }
            };
        }
        Ok(None)
    }
}

/// How many lines end in this text, and the column that follows it, in characters from 1.
fn position(text: &str) -> (u64, usize) {
    let text = text.replace("\r\n", "\n");
    let mut lines = 0;
    let mut last = "";
    for (number, line) in (0..).zip(text.split(['\n', '\r'])) {
        (lines, last) = (number, line);
    }
    (lines, last.chars().count().saturating_add(1))
}
