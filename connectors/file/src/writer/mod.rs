//! The writing end.

mod appender;
mod recovery;
mod thread;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Durability, Notify, NotifyCell,
    Order, Outcome, Rejected, RetryClass, TransportError,
};

use self::appender::lock_stats;
use self::thread::{Phase, StopRequest, WriterThread};
use crate::config::{FileWriterConfig, SyncPolicy};
use crate::error::endpoint;
use crate::headers::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES};

/// Writes chunks to a folder of segments.
///
/// It starts closed; [`reopen`](ChunkWriter::reopen) makes and locks the folder, moves aside the torn
/// end that a crash left, and starts the thread that writes.
/// After a drop without [`close`](ChunkWriter::close) the thread writes the queued chunks and ends by
/// itself.
pub struct FileWriter {
    config: FileWriterConfig,
    capability: Capability,
    stats: Arc<Mutex<WriterStats>>,
    thread: Option<Arc<WriterThread>>,
    notify: Arc<NotifyCell>,
    /// How many free bytes a full folder must have before it is opened again.
    wanted_bytes: u64,
}

/// Counts since the writer was made, over all its reopenings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterStats {
    /// How often data was forced to stable storage.
    pub syncs: u64,
    /// Pieces of torn or foreign bytes that recovery moved to `damaged/`.
    pub damaged_pieces: u64,
    /// How many bytes these had.
    pub damaged_bytes: u64,
    /// Pieces that could not be moved and stay where they are, for readers to report.
    pub unmoved_pieces: u64,
    /// Segments that could not be read when the folder was opened.
    pub unreadable_segments: u64,
    /// Segments removed because the folder was full.
    pub dropped_segments: u64,
    /// Chunks in them, by their numbers.
    pub dropped_chunks: u64,
    /// Bytes in them.
    pub dropped_bytes: u64,
}

impl FileWriter {
    /// A writer with these settings, closed.
    pub fn new(config: FileWriterConfig) -> Self {
        let durability = match config.sync {
            SyncPolicy::Chunk => Durability::Disk,
            SyncPolicy::None => Durability::Process,
        };
        let mut capability = Capability::new(crate::SCHEME, Order::PerLane, durability);
        // A chunk must fit a frame's length, and the whole folder.
        let overhead = (FRAME_HEADER_BYTES + SEGMENT_HEADER_BYTES) as u64;
        let folder_bytes = config.max_total_bytes.map_or(u64::MAX, |most| most.get());
        let largest = folder_bytes.saturating_sub(overhead).min(u32::MAX.into());
        let largest = usize::try_from(largest).unwrap_or(usize::MAX);
        capability.max_chunk_bytes = NonZeroUsize::new(largest)
            .map_or(NonZeroUsize::MIN, |largest| {
                largest.min(config.max_chunk_bytes)
            });
        capability.window_chunks = config.window_chunks;
        capability.window_bytes = config.window_bytes;
        Self {
            config,
            capability,
            stats: Arc::default(),
            thread: None,
            notify: Arc::default(),
            wanted_bytes: 0,
        }
    }

    /// The counts so far.
    pub fn stats(&self) -> WriterStats {
        *lock_stats(&self.stats)
    }

    /// A function that returns the counts while somebody else owns the writer.
    pub fn stats_handle(&self) -> impl Fn() -> WriterStats + Send + Sync + 'static {
        let stats = Arc::clone(&self.stats);
        move || *lock_stats(&stats)
    }

    fn error(&self, operation: &'static str, class: RetryClass, message: &str) -> TransportError {
        TransportError::new(operation, endpoint(&self.config.folder), class, message)
    }

    fn not_open(&self) -> TransportError {
        self.error("write to", RetryClass::Retry, "the writer is not open")
    }

    fn disk_is_slow(&self, operation: &'static str, class: RetryClass) -> TransportError {
        self.error(operation, class, "the disk did not answer in time")
    }
}

impl ChunkWriter for FileWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        if chunk.bytes.len() > self.capability.max_chunk_bytes.get() {
            return Err(Rejected::too_large(chunk, &self.capability));
        }
        let Some(thread) = &self.thread else {
            return Err(Rejected::broken(chunk, self.not_open()));
        };
        let mut state = thread.lock();
        match &state.phase {
            Phase::Open => {}
            Phase::Ended(Some(error)) => return Err(Rejected::broken(chunk, error.again())),
            Phase::Opening | Phase::Ended(None) => {
                return Err(Rejected::broken(chunk, self.not_open()));
            }
        }
        if !state.window.take(&chunk, &self.capability) {
            return Err(Rejected::full(chunk));
        }
        state.queue.push_back(chunk);
        drop(state);
        thread.wake();
        Ok(())
    }

    fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        let Some(thread) = &self.thread else {
            return Err(self.not_open());
        };
        let mut state = thread.lock();
        out.extend(state.confirmed.drain(..).map(confirmed));
        match &state.phase {
            Phase::Ended(Some(error)) => Err(error.again()),
            Phase::Opening | Phase::Open | Phase::Ended(None) => Ok(()),
        }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.notify.set(notify);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        // A thread that is still opening since an earlier call is waited for, not doubled.
        if let Some(thread) = &self.thread {
            if !matches!(thread.lock().phase, Phase::Opening) {
                thread.stop(StopRequest::Abandon);
                if !thread.wait(by, |phase| matches!(phase, Phase::Ended(_))) {
                    return Err(self.disk_is_slow("open", RetryClass::Retry));
                }
                self.wanted_bytes = thread.lock().wanted_bytes;
                self.thread = None;
            }
        }
        let thread = match &self.thread {
            Some(thread) => Arc::clone(thread),
            None => {
                let notify = Arc::clone(&self.notify);
                WriterThread::start(&self.config, &self.stats, notify, self.wanted_bytes)?
            }
        };
        self.thread = Some(Arc::clone(&thread));
        if !thread.wait(by, |phase| !matches!(phase, Phase::Opening)) {
            return Err(self.disk_is_slow("open", RetryClass::Retry));
        }
        let state = thread.lock();
        let Phase::Ended(failure) = &state.phase else {
            return Ok(());
        };
        self.thread = None;
        Err(failure
            .as_ref()
            .map_or_else(|| self.not_open(), TransportError::again))
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let Some(thread) = self.thread.take() else {
            return CloseReport::default();
        };
        thread.stop(StopRequest::Flush);
        if !thread.wait(by, |phase| matches!(phase, Phase::Ended(_))) {
            // The thread hangs in the disk; it ends when it comes back.
            thread.stop(StopRequest::Abandon);
        }
        let mut state = thread.lock();
        let error = match &state.phase {
            Phase::Ended(failure) => failure.as_ref().map(TransportError::again),
            Phase::Opening | Phase::Open => Some(self.disk_is_slow("close", RetryClass::Exhausted)),
        };
        CloseReport {
            confirmations: state.confirmed.drain(..).map(confirmed).collect(),
            unconfirmed: state.window.tickets().collect(),
            error,
        }
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            thread.stop(StopRequest::Flush);
        }
    }
}

const fn confirmed(ticket: u64) -> Confirmation {
    Confirmation {
        ticket,
        outcome: Outcome::Confirmed,
    }
}

impl fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWriter")
            .field("config", &self.config)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
