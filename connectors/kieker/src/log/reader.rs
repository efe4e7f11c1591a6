//! All files of a log, one after the other.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use baler_common::record::{Catalog, DynamicRecord};

use super::dat::DatReader;
use super::error::{BadLine, LogError};
use super::folder::{LogFolder, UnreadLog};
use super::map::LogMap;

/// The reaction to a wrong line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnBadLine {
    /// The line or record is counted and skipped.
    #[default]
    Skip,
    /// Reading ends with an error that names the line.
    Stop,
}

impl OnBadLine {
    /// Counts a line that is skipped, or returns it as the error that ends reading.
    fn handle(self, skipped: &mut BadLines, line: BadLine) -> Result<(), LogError> {
        match self {
            Self::Skip => {
                skipped.add(line);
                Ok(())
            }
            Self::Stop => Err(line.into()),
        }
    }
}

impl fmt::Display for OnBadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Skip => "skip",
            Self::Stop => "stop",
        })
    }
}

/// The text is no setting for wrong lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} says nothing about wrong lines; use skip or stop")]
pub struct ParseOnBadLineError {
    text: Box<str>,
}

impl FromStr for OnBadLine {
    type Err = ParseOnBadLineError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "skip" => Ok(Self::Skip),
            "stop" => Ok(Self::Stop),
            _ => Err(ParseOnBadLineError { text: text.into() }),
        }
    }
}

/// How a log is read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LogSettings {
    /// The reaction to a wrong line. Default: skip.
    pub on_bad_line: OnBadLine,
    /// The longest line of the map, and the longest record with the lines that continue it, in
    /// bytes. Default 1 MiB.
    pub line_bytes: usize,
    /// The types that the map may name. Default: Kieker's.
    pub catalog: Arc<Catalog>,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            on_bad_line: OnBadLine::default(),
            line_bytes: 1 << 20,
            catalog: Catalog::shared_kieker(),
        }
    }
}

/// The records, and lines of the map, that were skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BadLines {
    reasons: BTreeMap<&'static str, u64>,
    first: Vec<BadLine>,
}

impl BadLines {
    /// How many of them are kept to be shown.
    pub const KEPT: usize = 10;

    /// How many there were.
    pub fn total(&self) -> u64 {
        self.reasons.values().sum()
    }

    /// How many there were, by [`super::Problem::reason`].
    pub fn reasons(&self) -> &BTreeMap<&'static str, u64> {
        &self.reasons
    }

    /// The first ones.
    pub fn first(&self) -> &[BadLine] {
        &self.first
    }

    fn add(&mut self, line: BadLine) {
        let count = self.reasons.entry(line.problem.reason()).or_default();
        *count = count.saturating_add(1);
        if self.first.len() < Self::KEPT {
            self.first.push(line);
        }
    }
}

/// Reads the records of a folder that Kieker's `FileWriter` wrote, oldest file first.
///
/// It blocks while it reads files, and keeps one record and one buffer in memory.
/// The records have the logging timestamps of the log.
#[derive(Debug)]
pub struct LogReader {
    settings: LogSettings,
    map: Arc<LogMap>,
    files: std::vec::IntoIter<PathBuf>,
    current: Option<DatReader<BufReader<File>>>,
    unread: Vec<UnreadLog>,
    records: u64,
    bad_lines: BadLines,
}

impl LogReader {
    /// Opens the folder and reads its map.
    ///
    /// # Errors
    ///
    /// A [`LogError`] when the folder has no map or no text log, when the operating system refuses,
    /// or when a line of the map is wrong and the settings say so.
    pub fn open(folder: impl AsRef<Path>, settings: LogSettings) -> Result<Self, LogError> {
        let LogFolder { map, logs, unread } = LogFolder::open(folder.as_ref())?;
        let mut bad_lines = BadLines::default();
        let file = Arc::from(map.as_path());
        let input = open(&map)?;
        let skip = |line| settings.on_bad_line.handle(&mut bad_lines, line);
        let map = LogMap::read(&file, input, settings.line_bytes, &settings.catalog, skip)?;
        Ok(Self {
            settings,
            map: Arc::new(map),
            files: logs.into_iter(),
            current: None,
            unread,
            records: 0,
            bad_lines,
        })
    }

    /// The classes that the log names.
    pub fn log_map(&self) -> &LogMap {
        &self.map
    }

    /// Compressed and binary logs in the folder, which are left out.
    pub fn unread_files(&self) -> &[UnreadLog] {
        &self.unread
    }

    /// How many records were read so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The records and lines of the map that were skipped so far.
    pub fn bad_lines(&self) -> &BadLines {
        &self.bad_lines
    }

    /// The next record; `None` at the end of the last file, and after an error.
    ///
    /// # Errors
    ///
    /// A [`LogError`] when a file cannot be read, or when a line is wrong and the settings say so.
    pub fn next_record(&mut self) -> Result<Option<DynamicRecord>, LogError> {
        let result = self.read();
        if result.is_err() {
            self.files = Vec::new().into_iter();
            self.current = None;
        }
        result
    }

    fn read(&mut self) -> Result<Option<DynamicRecord>, LogError> {
        loop {
            let Some(reader) = &mut self.current else {
                let Some(path) = self.files.next() else {
                    return Ok(None);
                };
                let (file, map) = (Arc::from(path.as_path()), Arc::clone(&self.map));
                let reader = DatReader::new(file, open(&path)?, map, self.settings.line_bytes);
                self.current = Some(reader);
                continue;
            };
            match reader.next_record() {
                Ok(Some(record)) => {
                    self.records = self.records.saturating_add(1);
                    return Ok(Some(record));
                }
                Ok(None) => self.current = None,
                Err(LogError::Line(line)) => {
                    self.settings
                        .on_bad_line
                        .handle(&mut self.bad_lines, line)?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Iterator for LogReader {
    type Item = Result<DynamicRecord, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}

fn open(path: &Path) -> Result<BufReader<File>, LogError> {
    let file = File::open(path).map_err(|source| LogError::io(path, source))?;
    Ok(BufReader::with_capacity(64 << 10, file))
}
