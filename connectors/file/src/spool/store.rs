//! The disk: a folder of the file connector. The spool writes at its end and reads at its front.

mod chunks;
mod promise;

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{
    Backoff, ChunkReader as _, ChunkWriter as _, Notify, RetryClass, TransportError,
};

use super::config::SpoolConfig;
use super::state::SpoolWatch;
use super::{CHUNKS_FOLDER, LOCK_FILE, PROMISE_FILE};
use crate::{
    Backlog, ConsumerName, FileLock, FileReader, FileWriter, backlog, parse_segment_name,
    remove_consumed,
};
pub(crate) use chunks::Front;
use promise::{Promise, PromiseFile};

/// The consumer's name under which the spool reads its own folder.
const CONSUMER: &str = "replay";

/// The time limit of opening the disk.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// The folder of a spool.
pub(crate) struct Store {
    config: SpoolConfig,
    watch: SpoolWatch,
    notify: Arc<dyn Notify>,
    lock: Option<FileLock>,
    /// Present while the folder is locked.
    promise: Option<PromiseFile>,
    writer: Option<FileWriter>,
    /// Damaged pieces that earlier writers of this life found.
    damaged_before: u64,
    reader: Option<Box<FileReader>>,
    /// Chunks that are being written, in order.
    flight: VecDeque<Flight>,
    /// Chunks that are durable and counted, and that [`Store::written`] has not returned.
    durable: Vec<Flight>,
    /// The number of chunks that are known to be on disk and were not handed out.
    readable: u64,
    /// The number of chunks that were handed out and given back.
    again: u64,
    /// The time until which the disk is not used after an error.
    failed_until: Option<Instant>,
    backoff: Backoff,
    /// Whether the last attempt to read failed.
    unreadable: bool,
}

/// A chunk that is being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    /// The generation of the owner's tickets.
    pub(crate) generation: u64,
    pub(crate) ticket: u64,
    records: u32,
    bytes: usize,
}

impl Store {
    pub(crate) fn new(config: SpoolConfig, watch: SpoolWatch, notify: Arc<dyn Notify>) -> Self {
        Self {
            config,
            watch,
            notify,
            lock: None,
            promise: None,
            writer: None,
            damaged_before: 0,
            reader: None,
            flight: VecDeque::new(),
            durable: Vec::new(),
            readable: 0,
            again: 0,
            failed_until: None,
            backoff: Backoff::default(),
            unreadable: false,
        }
    }

    pub(crate) fn disk_error(&self, operation: &'static str, error: io::Error) -> TransportError {
        TransportError::caused_by(operation, self.endpoint(), RetryClass::Retry, error)
    }

    /// Whether the disk did not accept a chunk and is not used for a while.
    pub(crate) fn is_failing(&self) -> bool {
        self.failed_until.is_some()
    }

    /// Returns the time at which to try the disk again.
    pub(crate) fn failed_until(&self) -> Option<Instant> {
        self.failed_until
    }

    /// Ends the pause after an error: the next use tries the disk at once.
    pub(crate) fn try_now(&mut self, now: Instant) {
        if self.failed_until.is_some() {
            self.failed_until = Some(now);
        }
    }

    /// Stops using the disk for a while. The chunks that it has not confirmed are in doubt: they
    /// may be found later.
    fn fail(&mut self, now: Instant, error: TransportError) {
        // The next opening of the writer forgets its confirmations.
        self.take_confirmed().ok();
        self.flight.clear();
        self.failed_until = Some(now + self.backoff.pause(&self.config.retry));
        self.note(error);
    }

    /// Whether anything was written or found since the spool was last empty.
    pub(crate) fn is_in_use(&self) -> bool {
        self.writer.is_some() || self.reader.is_some()
    }

    /// Shows an error of the disk in the status.
    pub(crate) fn note(&self, error: TransportError) {
        let error = Arc::new(error);
        self.watch.update(|status| {
            status.disk_failures += 1;
            status.disk_error = Some(error);
        });
    }

    /// Closes reader and writer, and removes the segments that were sent on, or all if nothing is
    /// left.
    pub(crate) fn clear(&mut self, by: Instant, nothing_left: bool) {
        let mut error = None;
        if let Some(reader) = self.reader.take() {
            error = reader.close(by).error;
        }
        self.again = 0;
        self.unreadable = false;
        if let Some(writer) = self.writer.take() {
            self.damaged_before += writer.counts().damaged_pieces;
            let counts = writer.counts_handle();
            let closed = Box::new(writer).close(by);
            self.count_durable(closed.delivery_reports.len(), counts().next_chunk);
            error = error.or(closed.error);
        }
        self.flight.clear();
        if self.lock.is_none() {
            return;
        }
        match remove_consumed(&self.chunks_folder()) {
            Ok(_) if nothing_left => {
                self.promise_nothing();
                self.remove_segments(|_| true);
            }
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
    /// Waits until the file connector's thread has written its chunks. The lock is kept until then:
    /// the next spool in this process must not count the chunks before.
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            let closed = Box::new(writer).close(Instant::now() + OPEN_TIMEOUT);
            drop(closed);
        }
    }
}

impl Store {
    pub(super) fn chunks_folder(&self) -> PathBuf {
        self.config.folder.join(CHUNKS_FOLDER)
    }

    pub(super) fn endpoint(&self) -> String {
        format!("spool:{}", self.config.folder.display())
    }

    /// Locks the folder and looks for chunks that an earlier life left.
    ///
    /// `Err` means that another process has locked the folder. A disk that cannot be used now is a
    /// [failure](Self::is_failing) like others.
    pub(crate) fn prepare(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.lock.is_some() || self.failed_until.is_some_and(|until| until > now) {
            return Ok(());
        }
        let path = self.config.folder.join(LOCK_FILE);
        let locked =
            fs::create_dir_all(&self.config.folder).and_then(|()| FileLock::acquire(&path));
        let promise = self.config.folder.join(PROMISE_FILE);
        let opened = locked.and_then(|lock| Ok((lock, PromiseFile::open(&promise)?)));
        match opened {
            Ok((lock, promise)) => {
                self.lock = Some(lock);
                self.promise = Some(promise);
            }
            Err(error) => {
                let is_taken = error.kind() == io::ErrorKind::WouldBlock;
                let error = self.disk_error("lock", error);
                if is_taken {
                    return Err(error);
                }
                self.fail(now, error);
                return Ok(());
            }
        }
        self.find_what_was_left(now);
        Ok(())
    }

    fn find_what_was_left(&mut self, now: Instant) {
        let folder = self.chunks_folder();
        if !folder.is_dir() {
            self.count_lost(&Backlog::default());
            self.store_promise(Promise::default());
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
                self.count_lost(&found);
            }
            Err(error) => self.fail(now, self.disk_error("read", error)),
        }
        if self.readable == 0 {
            self.clear(now + OPEN_TIMEOUT, false);
        }
    }

    /// Counts the chunks that were reported as spooled, and are not on disk.
    fn count_lost(&mut self, found: &Backlog) {
        let promised = self.promised();
        let first = promised.removed.max(found.first_chunk);
        // There may be more than was promised: chunks that a failed write left behind.
        let expected = promised.next_chunk.saturating_sub(first);
        let lost = expected.saturating_sub(found.chunks);
        if lost > 0 {
            let records = promised.records.saturating_sub(found.records);
            self.watch.update(|status| {
                status.found_chunks += lost;
                status.found_records += records;
                status.lost_chunks += lost;
                status.lost_records += records;
            });
        }
        // The next life does not count them again.
        self.promise(promised.removed);
    }

    /// Returns what was promised; nothing if that is not known.
    fn promised(&self) -> Promise {
        let promised = self.promise.as_ref().and_then(PromiseFile::stored);
        promised.unwrap_or_default()
    }

    /// Records which chunks were reported as spooled. `removed` is the number before which all
    /// chunks were removed.
    pub(super) fn promise(&mut self, removed: u64) {
        if let Some(writer) = &self.writer {
            self.promise_before(writer.counts().next_chunk, removed);
        }
    }

    /// Records that the chunks before this number were reported as spooled.
    pub(super) fn promise_before(&mut self, next_chunk: u64, removed: u64) {
        let removed = removed.max(self.promised().removed);
        self.store_promise(Promise {
            next_chunk,
            // Numbers begin again if the spool could not store its position.
            removed: if removed > next_chunk { 0 } else { removed },
            records: self.watch.status().waiting_records,
        });
    }

    /// Records that all chunks are sent on and removed.
    fn promise_nothing(&mut self) {
        let next_chunk = self.promised().next_chunk;
        self.store_promise(Promise {
            next_chunk,
            removed: next_chunk,
            records: 0,
        });
    }

    fn store_promise(&mut self, promise: Promise) {
        let stored = self.promise.as_mut().map(|file| file.store(promise));
        if let Some(Err(error)) = stored {
            self.note(self.disk_error("write to", error));
        }
    }

    pub(super) fn remove_segments(&self, is_settled: impl Fn(u64) -> bool) {
        let Ok(entries) = fs::read_dir(self.chunks_folder()) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let segment = name.to_str().and_then(parse_segment_name);
            if segment.is_some_and(&is_settled) {
                // In the worst case, a segment that stays is read again in the next life.
                let removed = fs::remove_file(entry.path());
                drop(removed);
            }
        }
    }
}

#[cfg(test)]
mod tests;
