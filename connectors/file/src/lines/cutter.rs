//! Cuts an input into lines.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;

use crate::follow::{Event, FileKey, Fill, Mark};
use baler_common::record::BatchBuilder;
use baler_common::transport::Damaged;
use bytes::Bytes;

use crate::lines::config::LinesConfig;
use crate::lines::error::LineError;
use crate::lines::input::OpenInput;
use crate::lines::line::{Records, trimmed};
use crate::lines::origin::Origin;

/// A batch with this many records, or bytes, is full. The last record may go beyond.
const FULL_RECORDS: usize = 1_024;
const FULL_BYTES: usize = 256 << 10;

/// The part of a line that is too long which is kept, so that it can be sent again.
const MAX_KEPT_BYTES: usize = 16 << 20;

/// Cuts an input into lines, and adds them to a batch.
#[derive(Debug)]
pub(crate) struct Cutter {
    endpoint: Box<str>,
    max_bytes: usize,
    has_origin: bool,
    records: Records,
    pub(crate) batch: BatchBuilder,
    /// Lines that are not records, and losses.
    damaged: Vec<Damaged>,
    damaged_bytes: usize,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// The places after the last whole lines.
    pub(crate) places: HashMap<FileKey, Mark>,
    /// Lines that are too long and have not ended.
    long: foldhash::HashMap<Option<FileKey>, LongLine>,
    /// The file of the last line, its name, and a name of its content.
    file: Option<FileKey>,
    log: PathBuf,
    content_id: String,
    /// How much of the current part has no line end.
    searched: usize,
}

/// The beginning of a line that is too long.
#[derive(Debug)]
struct LongLine {
    offset: u64,
    length: u64,
    beginning: Vec<u8>,
}

impl LongLine {
    fn add(&mut self, part: &[u8]) {
        self.length += part.len() as u64;
        let room = MAX_KEPT_BYTES - self.beginning.len();
        self.beginning.extend(part.iter().take(room));
    }
}

impl Cutter {
    pub(crate) fn new(config: &LinesConfig, endpoint: &str) -> Self {
        let counts = ["not_a_record", "too_long", "nul_bytes", "losses"];
        Self {
            endpoint: endpoint.into(),
            max_bytes: config.max_line_bytes.get(),
            has_origin: config.origin,
            records: Records::new(&config.format, config.origin),
            batch: BatchBuilder::new(),
            damaged: Vec::new(),
            damaged_bytes: 0,
            counts: counts.map(|name| (name, 0)).into(),
            places: HashMap::new(),
            long: foldhash::HashMap::default(),
            file: None,
            log: config.path.clone(),
            content_id: String::new(),
            searched: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.batch.len() >= FULL_RECORDS
            || self.batch.estimated_bytes() >= FULL_BYTES
            || self.damaged.len() >= FULL_RECORDS
            || self.damaged_bytes >= FULL_BYTES
    }

    /// Cuts lines until the batch is full, or nothing more is there now. Returns what the input said
    /// last.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(crate) fn cut(&mut self, input: &mut OpenInput<'_>) -> io::Result<Fill> {
        while !self.is_full() {
            self.look_at_file(input);
            let part = input.bytes();
            // An empty part is shorter than what was searched before it.
            let unsearched = part.bytes.get(self.searched..);
            let end = unsearched.and_then(|bytes| memchr::memchr(b'\n', bytes));
            if let Some(end) = end.map(|end| self.searched + end) {
                let (line, _) = part.bytes.split_at(end);
                self.line(line, part.offset);
                self.consume(input, end + 1);
                continue;
            }
            self.searched = part.bytes.len();
            let is_long = self.long.contains_key(&part.file);
            let is_too_long = is_long || part.bytes.len() > self.max_bytes;
            if !is_long {
                self.places.extend(input.place());
            }
            if is_too_long {
                self.skip(input);
            }
            match input.fill()? {
                Fill::Bytes => {}
                Fill::Rest => {
                    let part = input.bytes();
                    let bytes = part.bytes.len();
                    self.line(part.bytes, part.offset);
                    self.consume(input, bytes);
                }
                end => return Ok(end),
            }
        }
        if !self.long.contains_key(&self.file) {
            self.places.extend(input.place());
        }
        Ok(Fill::Bytes)
    }

    /// Notes the file that the next line comes from.
    fn look_at_file(&mut self, input: &mut OpenInput<'_>) {
        let part = input.bytes();
        if part.bytes.is_empty() || part.file.is_none() || part.file == self.file {
            return;
        }
        self.file = part.file;
        self.log = part.log.to_owned();
        self.searched = 0;
        if self.has_origin {
            self.content_id = input.content_id(self.file);
        }
    }

    fn consume(&mut self, input: &mut OpenInput<'_>, bytes: usize) {
        input.consume(bytes);
        self.searched = 0;
    }

    /// Takes a line without its end.
    fn line(&mut self, line: &[u8], offset: u64) {
        if let Some(mut long) = self.long.remove(&self.file) {
            long.add(line);
            return self.too_long(long);
        }
        let (line, nuls) = trimmed(line, offset == 0);
        if nuls > 0 {
            self.count("nul_bytes", nuls);
        }
        if line.trim_ascii().is_empty() {
            return;
        }
        if line.len() > self.max_bytes {
            return self.too_long(LongLine {
                offset,
                length: line.len() as u64,
                beginning: line.to_vec(),
            });
        }
        let log = self.has_origin.then(|| self.log.to_string_lossy());
        let origin = log.as_deref().map(|file| Origin {
            file,
            id: &self.content_id,
            offset,
        });
        if let Err(error) = self.records.add(line, origin.as_ref(), &mut self.batch) {
            self.count("not_a_record", 1);
            self.bad(line.to_vec(), offset, &error);
        }
    }

    /// Takes the part of a line that is too long.
    fn skip(&mut self, input: &mut OpenInput<'_>) {
        let part = input.bytes();
        // The last byte stays, so that the end of the file is the end of the line.
        let Some((_, taken)) = part.bytes.split_last() else {
            return;
        };
        let bytes = taken.len();
        let is_nuls = part.bytes.iter().all(|byte| *byte == 0);
        if !self.long.contains_key(&part.file) && is_nuls {
            // A hole, which a writer left that did not notice a truncation.
            self.count("nul_bytes", bytes as u64);
        } else {
            let offset = part.offset;
            let long = self.long.entry(part.file).or_insert_with(|| LongLine {
                offset,
                length: 0,
                beginning: Vec::new(),
            });
            long.add(taken);
        }
        self.consume(input, bytes);
    }

    fn too_long(&mut self, long: LongLine) {
        let error = LineError::TooLong {
            length: long.length,
            limit: self.max_bytes,
        };
        self.count("too_long", 1);
        self.bad(long.beginning, long.offset, &error);
    }

    fn bad(&mut self, bytes: Vec<u8>, offset: u64, error: &LineError) {
        self.put_aside(
            bytes.into(),
            &self.log.display().to_string(),
            offset,
            error.to_string(),
        );
    }

    fn put_aside(&mut self, bytes: Bytes, lane: &str, offset: u64, reason: String) {
        self.damaged_bytes += bytes.len();
        self.damaged.push(Damaged {
            token: None,
            bytes,
            origin: baler_common::transport::Origin {
                endpoint: self.endpoint.clone(),
                lane: lane.into(),
                position: offset,
            },
            reason: reason.into(),
            peer: None,
        });
    }

    /// Logs what happened to a file, and counts it.
    pub(crate) fn happened(&mut self, event: Event) {
        let name = match &event {
            Event::Finished { .. } => "finished_files",
            Event::Found { .. } => "new_files",
            Event::Lost { .. } => "losses",
            Event::Renamed { .. } => "rotations",
            Event::Truncated { .. } => "truncations",
            _ => "",
        };
        if !name.is_empty() {
            self.count(name, 1);
        }
        let endpoint = &*self.endpoint;
        match &event {
            Event::Lost { path, offset, .. } => {
                tracing::warn!(endpoint, "{event}");
                let lane = path.display().to_string();
                self.put_aside(Bytes::new(), &lane, *offset, event.to_string());
            }
            Event::Blocked { .. } => tracing::warn!(endpoint, "{event}"),
            _ => tracing::info!(endpoint, "{event}"),
        }
    }

    fn count(&mut self, name: &'static str, more: u64) {
        let count = self.counts.entry(name).or_default();
        *count += more;
    }

    /// Takes the lines that are not records.
    pub(crate) fn take_damaged(&mut self) -> Vec<Damaged> {
        self.damaged_bytes = 0;
        std::mem::take(&mut self.damaged)
    }
}
