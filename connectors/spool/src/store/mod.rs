//! The disk: a folder of the file connector, written behind and read in front.

mod folder;
mod read;
mod write;

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkReader as _, ChunkWriter as _, Notify, RetryClass, TransportError,
};
use baler_connector_file::{FileReader, FileWriter, remove_consumed};

pub(crate) use self::read::Front;
use self::write::Flight;
use crate::config::SpoolConfig;
use crate::watch::{SpoolWatch, add};

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

    /// Whether anything was written or found since the spool was last empty.
    pub(crate) fn is_in_use(&self) -> bool {
        self.writer.is_some() || self.reader.is_some()
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
