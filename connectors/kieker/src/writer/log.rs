//! Writes records into a folder, in the form that Kieker's `FileWriter` leaves.
//!
//! ```text
//! DIR/kieker-20261125-030000-1234567890-UTC-HOST-KIEKER/
//!     kieker.map
//!     kieker-20261125-030000123-UTC-001-Baler.dat
//!     kieker-20261125-030102456-UTC-002-Baler.dat
//! ```
//!
//! A name instead of a number at the end means that the map has escapes, as in Kieker up to 1.12.
//! This crate's reader then undoes them; Kieker's readers always do.
//!
//! Each opening makes its own folder, whose strings are numbered from the start.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use baler_common::calendar;
use baler_common::number::to_u64;
use baler_common::record::{NO_TIMESTAMP, RecordBatch};
use baler_common::transport::{
    Capability, Durability, Failure, Order, TransportError, WriterStats,
};
use baler_connector_file::thread_writer::{BlockingMedium, Opening};

use super::log_config::{KiekerLogWriterConfig, LogFormat};
use super::output::{ChunkOutput, RecordOutput, WriteError, WriterCounts};
use super::text::TextEncoder;
use crate::LOG_SCHEME;
use crate::container::KiekerStreamEncoder;
use crate::log::escaped;

/// A folder that is being filled.
#[derive(Debug)]
pub struct LogOutput {
    config: KiekerLogWriterConfig,
    folder: PathBuf,
    map: File,
    encoder: LogEncoder,
    open: Option<OpenFile>,
    /// The number of the file.
    counter: u32,
    /// The records of a chunk, and the lines of the map for its new strings.
    records: Vec<u8>,
    map_lines: String,
}

/// A file of records that is being filled.
#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    file: File,
    entries: usize,
    bytes: u64,
}

#[derive(Debug)]
enum LogEncoder {
    Binary(KiekerStreamEncoder),
    Text(TextEncoder),
}

impl BlockingMedium for KiekerLogWriterConfig {
    type Output = ChunkOutput<LogOutput>;
    type Counts = WriterCounts;
    const THREAD: &'static str = "baler-kieker";

    fn capability(&self) -> Capability {
        let mut capability = Capability::new(LOG_SCHEME, Order::PerLane, Durability::Process);
        // The records come back, but in the reader's own chunks.
        capability.readable = false;
        self.window.apply(&mut capability);
        capability
    }

    fn endpoint(&self) -> String {
        self.to_string()
    }

    fn stats(counts: &WriterCounts) -> WriterStats {
        let mut stats = WriterStats::default();
        stats.altered = counts.altered;
        stats
    }

    fn open(&self, opening: Opening<'_, WriterCounts>) -> Result<Self::Output, TransportError> {
        let schema = self.schema.as_deref();
        ChunkOutput::open(self.to_string(), schema, opening.counts, || {
            LogOutput::begin(self)
        })
    }
}

impl RecordOutput for LogOutput {
    fn write(&mut self, batch: &RecordBatch) -> Result<u64, WriteError> {
        if batch.is_empty() {
            return Ok(0);
        }
        if !self.encoder.has_room_for(batch) {
            self.start_anew(batch)?;
        }
        let missing_timestamp = match self.config.set_timestamps {
            true => unix_nanos(),
            false => NO_TIMESTAMP,
        };
        self.records.clear();
        self.map_lines.clear();
        let Self {
            encoder,
            records,
            map_lines,
            ..
        } = self;
        let altered = encoder.encode(batch, missing_timestamp, map_lines, records)?;
        let written = self.append(batch.len());
        written.map_err(|error| WriteError::Broken(Failure::of_io("write to", &error)))?;
        Ok(altered)
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.end_file()
            .map_err(|error| Failure::of_io("close", &error))
    }
}

impl LogOutput {
    fn begin(config: &KiekerLogWriterConfig) -> Result<Self, Failure> {
        let (folder, map) = begin_folder(config).map_err(|error| Failure::of_io("open", &error))?;
        Ok(Self {
            encoder: LogEncoder::new(config.format),
            config: config.clone(),
            folder,
            map,
            open: None,
            counter: 0,
            records: Vec::new(),
            map_lines: String::new(),
        })
    }

    /// Begins a new folder, whose string table is empty.
    fn start_anew(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        self.encoder = LogEncoder::new(self.config.format);
        if !self.encoder.has_room_for(batch) {
            let message = "the chunk has more strings than a reader takes of one log";
            return Err(WriteError::Refused(message.into()));
        }
        let begun = self.end_file().and_then(|()| begin_folder(&self.config));
        let begun = begun.map_err(|error| WriteError::Broken(Failure::of_io("open", &error)))?;
        (self.folder, self.map) = begun;
        self.counter = 0;
        Ok(())
    }

    /// Writes the encoded records. Writes the strings first, so that no record lacks its strings.
    fn append(&mut self, entries: usize) -> io::Result<()> {
        let bytes = to_u64(self.records.len());
        let is_full = |open: &OpenFile| {
            let most = self.config.max_bytes.map_or(u64::MAX, |most| most.get());
            open.entries + entries > self.config.max_entries.get() || open.bytes + bytes > most
        };
        if self.open.as_ref().is_some_and(is_full) {
            self.end_file()?;
        }
        self.map.write_all(self.map_lines.as_bytes())?;
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(begin_file(&self.config, &self.folder, &mut self.counter)?),
        };
        if let Err(error) = open.file.write_all(&self.records) {
            // The chunk is written again, into another folder.
            open.file.set_len(open.bytes).ok();
            return Err(error);
        }
        open.entries += entries;
        open.bytes += bytes;
        Ok(())
    }

    /// Ends the file that is being filled, and compresses it.
    fn end_file(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        drop(open.file);
        self.config.compression.apply(&open.path)
    }
}

impl LogEncoder {
    fn new(format: LogFormat) -> Self {
        match format {
            LogFormat::Binary => Self::Binary(KiekerStreamEncoder::new()),
            LogFormat::Text => Self::Text(TextEncoder::default()),
        }
    }

    /// Whether the strings of a batch fit into the log.
    fn has_room_for(&self, batch: &RecordBatch) -> bool {
        match self {
            Self::Binary(encoder) => encoder.has_room_for(batch),
            // The map has only the names of classes.
            Self::Text(_) => true,
        }
    }

    /// Appends records, and the lines of the map for new strings. Returns the number of strings
    /// that are altered.
    fn encode(
        &mut self,
        batch: &RecordBatch,
        missing_timestamp: i64,
        map: &mut String,
        out: &mut Vec<u8>,
    ) -> Result<u64, WriteError> {
        match self {
            Self::Binary(encoder) => {
                encoder.set_missing_timestamp(missing_timestamp);
                encoder.encode(batch, |id, text| push_entry(id, text, map), out)?;
                Ok(0)
            }
            Self::Text(encoder) => {
                let mut lines = String::new();
                let register = |id, text: &str| push_entry(id, text, map);
                let altered = encoder.encode(batch, missing_timestamp, register, &mut lines)?;
                out.append(&mut lines.into_bytes());
                Ok(altered)
            }
        }
    }
}

/// Appends a line of `kieker.map`, escaped as `FSUtil.decodeNewline` of Kieker's readers expects.
fn push_entry(id: impl std::fmt::Display, text: &str, map: &mut String) {
    writeln!(map, "${id}={}", escaped(text)).ok();
}

/// Makes the folder of a log with its map. The name follows `KiekerLogFolder.java`.
fn begin_folder(config: &KiekerLogWriterConfig) -> io::Result<(PathBuf, File)> {
    fs::create_dir_all(&config.parent)?;
    let now = unix_nanos();
    let time = file_time(now);
    // Kieker puts the time since the start of the machine here. It distinguishes folders of the
    // same second.
    let mut number = now % 10_000_000_000_000;
    let folder = loop {
        let (host, name) = (&config.hostname, &config.name);
        let folder = format!("kieker-{time}-{number}-UTC-{host}-{name}");
        let folder = config.parent.join(folder);
        match fs::create_dir(&folder) {
            Ok(()) => break folder,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    };
    let map = File::create_new(folder.join("kieker.map"))?;
    Ok((folder, map))
}

/// Makes the next file of a folder. The name follows `RotatingLogFilePoolHandler.java` and ends in
/// a name.
fn begin_file(
    config: &KiekerLogWriterConfig,
    folder: &Path,
    counter: &mut u32,
) -> io::Result<OpenFile> {
    *counter += 1;
    let now = unix_nanos();
    let (time, millis) = (file_time(now), now / 1_000_000 % 1_000);
    let extension = config.format.extension();
    let path = folder.join(format!(
        "kieker-{time}{millis:03}-UTC-{counter:03}-Baler{extension}"
    ));
    Ok(OpenFile {
        file: File::create_new(&path)?,
        path,
        entries: 0,
        bytes: 0,
    })
}

/// Returns a time in UTC as names of files have it: `20261125-030000`.
fn file_time(unix_nanos: i64) -> String {
    let seconds = unix_nanos.div_euclid(1_000_000_000);
    let (year, month, day) = calendar::date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!(
        "{year:04}{month:02}{day:02}-{hour:02}{minute:02}{:02}",
        second % 60
    )
}

/// Returns the time since 1970. A clock before it counts as 1970, one after 2262 as the last time.
fn unix_nanos() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.unwrap_or_default().as_nanos();
    i64::try_from(nanos).unwrap_or(i64::MAX)
}
