//! The disk: a folder of the file connector, written behind and read in front.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{
    Chunk, ChunkReader as _, ChunkWriter as _, Delivery, Notify, Received, RejectReason, Rejected,
    RetryClass, Token, TransportError, Verdict,
};
use baler_connector_file::{
    ConsumerName, FileReader, FileReaderConfig, FileWriter, FileWriterConfig, Keep, backlog,
    parse_segment_name, remove_consumed,
};

use crate::config::SpoolConfig;
use crate::watch::{SpoolWatch, add, take};
use crate::{CHUNKS_FOLDER, LOCK_FILE};

/// Under which name the spool reads its own folder.
const CONSUMER: &str = "replay";

/// How long the disk may take to open.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// The folder of a spool.
pub(crate) struct Store {
    config: SpoolConfig,
    watch: SpoolWatch,
    bell: Arc<dyn Notify>,
    lock: Option<File>,
    writer: Option<FileWriter>,
    /// Damaged pieces that earlier writers of this life found.
    damaged_before: u64,
    reader: Option<Box<FileReader>>,
    /// Being written, in order.
    flight: VecDeque<Flight>,
    /// Known to be on disk and not handed out.
    readable: u64,
    /// Handed out and given back.
    again: u64,
    /// Until when the disk is left alone after an error.
    failed_until: Option<Instant>,
    failures: u32,
    draws: u64,
    /// The last attempt to read failed.
    unreadable: bool,
}

/// A chunk that is being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    /// Of which life of the owner's tickets.
    pub(crate) generation: u64,
    pub(crate) ticket: u64,
    records: u32,
    bytes: usize,
}

/// What the front of the spool has.
pub(crate) enum Front {
    Chunk(Delivery),
    Damaged(baler_common::transport::Damaged),
    /// Nothing, for sure.
    Empty,
    /// What is there cannot be told now.
    Unknown,
}

impl Store {
    pub(crate) fn new(config: SpoolConfig, watch: SpoolWatch, bell: Arc<dyn Notify>) -> Self {
        Self {
            config,
            watch,
            bell,
            lock: None,
            writer: None,
            damaged_before: 0,
            reader: None,
            flight: VecDeque::new(),
            readable: 0,
            again: 0,
            failed_until: None,
            failures: 0,
            draws: 0,
            unreadable: false,
        }
    }

    fn chunks_folder(&self) -> PathBuf {
        self.config.folder.join(CHUNKS_FOLDER)
    }

    fn endpoint(&self) -> String {
        format!("spool:{}", self.config.folder.display())
    }

    /// Locks the folder and looks what an earlier life left.
    ///
    /// `Err` means that another process has it; a disk that cannot be used now is a
    /// [failure](Self::is_failing) like others.
    pub(crate) fn prepare(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.lock.is_some() {
            return Ok(());
        }
        let path = self.config.folder.join(LOCK_FILE);
        let opened = fs::create_dir_all(&self.config.folder).and_then(|()| {
            OpenOptions::new()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path)
        });
        let mut file = match opened {
            Ok(file) => file,
            Err(error) => {
                self.fail(now, self.disk_error("open", error));
                return Ok(());
            }
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let process = match holder.trim() {
                    "" => String::from("another process"),
                    process => format!("another process ({process})"),
                };
                return Err(TransportError::new(
                    "lock",
                    self.endpoint(),
                    RetryClass::Retry,
                    format!("{process} has this spool; give each process its own folder"),
                ));
            }
            Err(TryLockError::Error(error)) => {
                self.fail(now, self.disk_error("lock", error));
                return Ok(());
            }
        }
        // The process is told to people only: a full disk must not keep anybody from opening.
        let told = file
            .set_len(0)
            .and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
        drop(told);
        self.lock = Some(file);
        self.find_what_was_left(now);
        Ok(())
    }

    fn find_what_was_left(&mut self, now: Instant) {
        let folder = self.chunks_folder();
        if !folder.is_dir() {
            return;
        }
        // The writer moves a torn end aside before anything is counted.
        self.ensure_writable(now);
        let Ok(name) = CONSUMER.parse::<ConsumerName>() else {
            return;
        };
        match backlog(&folder, &name) {
            Ok(found) => {
                self.readable = found.chunks;
                self.watch.update(|status| {
                    status.found_chunks = found.chunks;
                    status.found_records = found.records;
                    status.waiting_records = found.records;
                    status.stats.waiting_chunks = found.chunks;
                    status.stats.waiting_bytes = found.bytes;
                });
            }
            Err(error) => self.fail(now, self.disk_error("read", error)),
        }
        if self.readable == 0 {
            self.clear(now + OPEN_TIMEOUT, false);
        }
    }

    fn disk_error(&self, operation: &'static str, error: std::io::Error) -> TransportError {
        TransportError::caused_by(operation, self.endpoint(), RetryClass::Retry, error)
    }

    /// Whether the disk did not take a chunk and is left alone for a while.
    pub(crate) fn is_failing(&self) -> bool {
        self.failed_until.is_some()
    }

    /// When to try the disk again.
    pub(crate) fn failed_until(&self) -> Option<Instant> {
        self.failed_until
    }

    /// Tries the disk at once when it is needed next.
    pub(crate) fn try_now(&mut self, now: Instant) {
        if self.failed_until.is_some() {
            self.failed_until = Some(now);
        }
    }

    fn fail(&mut self, now: Instant, error: TransportError) {
        self.flight.clear();
        self.draws = self.draws.wrapping_add(1);
        let delay = self.config.retry.delay(self.failures, self.draws);
        self.failures = self.failures.saturating_add(1);
        self.failed_until = Some(now + delay);
        self.note(error);
    }

    /// Opens the writer if it is not; says whether chunks can be offered.
    pub(crate) fn ensure_writable(&mut self, now: Instant) -> bool {
        if self.failed_until.is_some_and(|until| until > now) {
            return false;
        }
        if self.writer.is_some() && self.failed_until.is_none() {
            return true;
        }
        if self.lock.is_none() {
            // Another process that has it meanwhile is an error of the disk at this point.
            if let Err(error) = self.prepare(now) {
                self.fail(now, error);
            }
            if self.lock.is_none() || self.failed_until.is_some_and(|until| until > now) {
                return false;
            }
        }
        let writer = self.writer.get_or_insert_with(|| {
            let mut writer = FileWriter::new(writer_config(&self.config));
            writer.set_notify(Arc::clone(&self.bell));
            writer
        });
        match writer.reopen(now + OPEN_TIMEOUT) {
            Ok(()) => {
                self.failed_until = None;
                let damaged = self
                    .damaged_before
                    .saturating_add(writer.stats().damaged_pieces);
                self.watch.update(|status| {
                    status.damaged_pieces = status.damaged_pieces.max(damaged);
                });
                true
            }
            Err(error) => {
                self.fail(now, error);
                false
            }
        }
    }

    /// Offers a chunk to the writer; says whether it was taken.
    pub(crate) fn offer(&mut self, chunk: Chunk, generation: u64, now: Instant) -> bool {
        let flight = Flight {
            generation,
            ticket: chunk.ticket,
            records: chunk.meta.records,
            bytes: chunk.bytes.len(),
        };
        let Some(writer) = &mut self.writer else {
            return false;
        };
        let reason = match writer.offer(chunk) {
            Ok(()) => {
                self.flight.push_back(flight);
                return true;
            }
            Err(Rejected { reason, .. }) => reason,
        };
        match reason {
            RejectReason::Full => {}
            RejectReason::Broken(error) => self.fail(now, *error),
            RejectReason::TooLarge { max_chunk_bytes } => {
                let message = format!(
                    "a chunk of {} bytes is above the {max_chunk_bytes} that fit into the spool",
                    flight.bytes
                );
                let error =
                    TransportError::new("write to", self.endpoint(), RetryClass::Retry, message);
                self.fail(now, error);
            }
        }
        false
    }

    /// What became durable since the last call, in order.
    pub(crate) fn written(&mut self, now: Instant) -> Vec<Flight> {
        let Some(writer) = &mut self.writer else {
            return Vec::new();
        };
        if self.flight.is_empty() {
            return Vec::new();
        }
        let mut confirmations = Vec::new();
        let result = writer.confirmations(&mut confirmations);
        let count = confirmations.len().min(self.flight.len());
        let written: Vec<_> = self.flight.drain(..count).collect();
        if !written.is_empty() {
            self.failures = 0;
            self.watch.update(|status| {
                status.disk_error = None;
                for flight in &written {
                    add(&mut status.stats.spooled_chunks, 1);
                    add(&mut status.stats.spooled_records, u64::from(flight.records));
                    add(&mut status.stats.waiting_chunks, 1);
                    add(&mut status.stats.waiting_bytes, flight.bytes as u64);
                    add(&mut status.waiting_records, u64::from(flight.records));
                }
            });
            self.readable = self.readable.saturating_add(written.len() as u64);
        }
        if let Err(error) = result {
            self.fail(now, error);
        }
        written
    }

    /// Whether what is there cannot be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// Whether chunks are being written.
    pub(crate) fn is_writing(&self) -> bool {
        !self.flight.is_empty()
    }

    /// Whether a chunk is known to be there that was not handed out.
    pub(crate) fn has_front(&self) -> bool {
        self.readable > 0 || self.again > 0
    }

    /// Whether anything was written or found since the spool was last empty.
    pub(crate) fn is_in_use(&self) -> bool {
        self.writer.is_some() || self.reader.is_some()
    }

    /// The oldest chunk that was not handed out.
    pub(crate) fn front(&mut self, now: Instant) -> Front {
        // What is being written may be there already, but is counted when it is durable. What a
        // failed write left behind was never counted: it shows when nothing else is left.
        if !self.has_front() && !self.flight.is_empty() {
            return Front::Unknown;
        }
        if !self.is_in_use() && !self.has_front() {
            return Front::Empty;
        }
        self.ensure_readable(now);
        let Some(reader) = &mut self.reader else {
            return Front::Unknown;
        };
        match reader.receive(now) {
            Ok(Received::Chunk(delivery)) => {
                self.unreadable = false;
                if delivery.redelivered {
                    take(&mut self.again, 1);
                } else if self.readable > 0 {
                    take(&mut self.readable, 1);
                } else {
                    let records = delivery.meta.map_or(0, |meta| u64::from(meta.records));
                    self.watch.update(|status| {
                        add(&mut status.stats.spooled_chunks, 1);
                        add(&mut status.stats.spooled_records, records);
                        add(&mut status.stats.waiting_chunks, 1);
                        add(&mut status.stats.waiting_bytes, delivery.bytes.len() as u64);
                        add(&mut status.waiting_records, records);
                    });
                }
                Front::Chunk(delivery)
            }
            Ok(Received::Damaged(damaged)) => {
                self.watch
                    .update(|status| add(&mut status.damaged_pieces, 1));
                Front::Damaged(damaged)
            }
            Ok(_) => {
                if !self.flight.is_empty() {
                    return Front::Unknown;
                }
                // Counted, and not there: the disk has lost it.
                let lost = std::mem::take(&mut self.readable);
                self.again = 0;
                self.watch.update(|status| {
                    add(&mut status.lost_chunks, lost);
                    take(&mut status.stats.waiting_chunks, lost);
                });
                Front::Empty
            }
            Err(error) => {
                self.unreadable = true;
                self.fail(now, error);
                Front::Unknown
            }
        }
    }

    fn ensure_readable(&mut self, now: Instant) {
        if self.reader.is_some() || self.failed_until.is_some_and(|until| until > now) {
            return;
        }
        let mut config = FileReaderConfig::new(self.chunks_folder());
        config.follow = true;
        config.consumer = CONSUMER.parse().ok();
        // Not by itself: a settlement must not fail because the disk is full.
        config.commit_interval = Duration::MAX;
        config.keep = Keep::Consumed;
        config.max_chunk_bytes = NonZeroUsize::MAX;
        match FileReader::open(config) {
            Ok(reader) => self.reader = Some(Box::new(reader)),
            Err(error) => {
                self.unreadable = true;
                self.fail(now, error);
            }
        }
    }

    /// Says what became of a chunk that was handed out.
    pub(crate) fn settle(&mut self, token: Token, verdict: Verdict) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        if verdict == Verdict::Retry {
            add(&mut self.again, 1);
        }
        // It writes nothing, so nothing can go wrong.
        let settled = reader.settle(token, verdict);
        drop(settled);
    }

    /// Writes the position, and removes the segments before it.
    pub(crate) fn commit(&mut self) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        let Err(error) = reader.commit_now() else {
            return;
        };
        // A full disk: what was sent on goes all the same. A position in a segment that is gone
        // means the one after it.
        let settled = reader.watermark().segment;
        self.remove_segments(|segment| segment < settled);
        self.note(error);
    }

    fn remove_segments(&self, is_settled: impl Fn(u64) -> bool) {
        let Ok(entries) = fs::read_dir(self.chunks_folder()) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let segment = name.to_str().and_then(parse_segment_name);
            if segment.is_some_and(&is_settled) {
                // One that stays is read again in the next life, at worst.
                let removed = fs::remove_file(entry.path());
                drop(removed);
            }
        }
    }

    fn note(&self, error: TransportError) {
        let error = Arc::new(error);
        self.watch.update(|status| {
            add(&mut status.disk_failures, 1);
            status.disk_error = Some(error);
        });
    }

    /// Closes reader and writer, and removes what was sent on: everything, if nothing is left.
    pub(crate) fn clear(&mut self, by: Instant, nothing_left: bool) {
        let mut error = None;
        if let Some(reader) = self.reader.take() {
            error = reader.close(by).error;
        }
        self.again = 0;
        self.unreadable = false;
        if let Some(writer) = self.writer.take() {
            self.damaged_before = self
                .damaged_before
                .saturating_add(writer.stats().damaged_pieces);
            let closed = Box::new(writer).close(by);
            error = error.or(closed.error);
        }
        self.flight.clear();
        if self.lock.is_none() {
            return;
        }
        match remove_consumed(&self.chunks_folder()) {
            Ok(_) if nothing_left => self.remove_segments(|_| true),
            Ok(_) => {}
            Err(removed) => error = error.or(Some(self.disk_error("remove from", removed))),
        }
        match error {
            Some(error) => self.note(error),
            None => {
                self.failed_until = None;
                self.watch.update(|status| status.disk_error = None);
            }
        }
    }
}

impl Drop for Store {
    /// The file connector's thread still writes what it has: who opens the spool next, in this
    /// process, must not count before that is done, so the lock is kept until then.
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            let closed = Box::new(writer).close(Instant::now() + OPEN_TIMEOUT);
            drop(closed);
        }
    }
}

fn writer_config(config: &SpoolConfig) -> FileWriterConfig {
    let mut writer = FileWriterConfig::new(config.folder.join(CHUNKS_FOLDER));
    // Room comes back by the segment, so the bound is several of them.
    let share = NonZeroU64::new(config.max_bytes.get() / 8).unwrap_or(NonZeroU64::MIN);
    writer.segment_bytes = config.segment_bytes.min(share);
    writer.max_total_bytes = Some(config.max_bytes);
    writer.sync = config.sync;
    writer.keep = Keep::Consumed;
    // The medium's limit holds; the file connector's own is that of a frame's length.
    writer.max_chunk_bytes = NonZeroUsize::MAX;
    writer
}
