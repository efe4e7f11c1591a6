//! The writing end: the owner's side of the window.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Durability, Notify, NotifyCell,
    Order, Outcome, Rejected, RetryClass, TransportError,
};

use crate::config::{FileWriterConfig, SyncPolicy};
use crate::error::endpoint;
use crate::segment::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES};
use crate::stats::{WriterCounters, WriterStats};
use crate::worker::{Phase, Shared, Stop};

/// Writes chunks to a folder of segments.
///
/// It starts closed; [`reopen`](ChunkWriter::reopen) makes and locks the folder, moves aside what
/// a crash left torn, and starts the thread that writes.
/// Dropping it without [`close`](ChunkWriter::close) lets the thread write what it has and end by
/// itself.
pub struct FileWriter {
    config: FileWriterConfig,
    capability: Capability,
    counters: Arc<WriterCounters>,
    shared: Option<Arc<Shared>>,
    notify: Arc<NotifyCell>,
    /// What a full folder has to have room for before it is opened again.
    wanted_bytes: u64,
}

impl FileWriter {
    /// A writer with these settings, closed.
    pub fn new(config: FileWriterConfig) -> Self {
        let durability = match config.sync {
            SyncPolicy::Chunk | SyncPolicy::Interval(_) => Durability::Disk,
            SyncPolicy::None => Durability::Process,
        };
        let mut capability = Capability::new(crate::SCHEME, Order::PerLane, durability);
        let overhead = FRAME_HEADER_BYTES + SEGMENT_HEADER_BYTES;
        // A chunk must fit a frame's length, and the whole folder.
        let largest = config.max_total_bytes.map_or(u32::MAX as usize, |most| {
            let most = usize::try_from(most.get()).unwrap_or(usize::MAX);
            most.saturating_sub(overhead).min(u32::MAX as usize)
        });
        capability.max_chunk_bytes = std::num::NonZeroUsize::new(largest)
            .map_or(std::num::NonZeroUsize::MIN, |largest| {
                largest.min(config.max_chunk_bytes)
            });
        capability.window_chunks = config.window_chunks;
        capability.window_bytes = config.window_bytes;
        Self {
            config,
            capability,
            counters: Arc::default(),
            shared: None,
            notify: Arc::default(),
            wanted_bytes: 0,
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> WriterStats {
        self.counters.stats()
    }

    /// Reads the counts while somebody else owns the writer.
    pub fn stats_handle(&self) -> impl Fn() -> WriterStats + Send + Sync + 'static {
        let counters = Arc::clone(&self.counters);
        move || counters.stats()
    }

    fn not_open(&self) -> TransportError {
        TransportError::new(
            "write to",
            endpoint(&self.config.folder),
            RetryClass::Retry,
            "the writer is not open",
        )
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
        let Some(shared) = &self.shared else {
            return Err(Rejected::broken(chunk, self.not_open()));
        };
        let mut state = shared.lock();
        match &state.phase {
            Phase::Open => {}
            Phase::Ended(Some(error)) => return Err(Rejected::broken(chunk, error.again())),
            Phase::Opening | Phase::Ended(None) => {
                return Err(Rejected::broken(chunk, self.not_open()));
            }
        }
        if !state.window.take(&chunk, &self.capability) {
            state.starved = true;
            drop(state);
            shared.work.notify_one();
            return Err(Rejected::full(chunk));
        }
        state.queue.push_back(chunk);
        drop(state);
        shared.work.notify_one();
        Ok(())
    }

    fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        let Some(shared) = &self.shared else {
            return Err(self.not_open());
        };
        let mut state = shared.lock();
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
        let busy = || {
            TransportError::new(
                "open",
                endpoint(&self.config.folder),
                RetryClass::Retry,
                "the disk did not answer in time",
            )
        };
        // A thread that is still opening since an earlier call is waited for, not doubled.
        if let Some(shared) = &self.shared {
            let is_opening = matches!(shared.lock().phase, Phase::Opening);
            if !is_opening {
                shared.stop(Stop::Abandon);
                if !shared.wait(by, |phase| matches!(phase, Phase::Ended(_))) {
                    return Err(busy());
                }
                self.wanted_bytes = shared.lock().wanted_bytes;
                self.shared = None;
            }
        }
        let shared = match &self.shared {
            Some(shared) => shared,
            None => {
                let notify = Arc::clone(&self.notify);
                let started =
                    Shared::start(&self.config, &self.counters, notify, self.wanted_bytes)?;
                &*self.shared.insert(started)
            }
        };
        if !shared.wait(by, |phase| !matches!(phase, Phase::Opening)) {
            return Err(busy());
        }
        let failure = match &shared.lock().phase {
            Phase::Ended(failure) => failure.as_ref().map(TransportError::again),
            Phase::Opening | Phase::Open => return Ok(()),
        };
        let error = failure.unwrap_or_else(|| self.not_open());
        self.shared = None;
        Err(error)
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let Some(shared) = self.shared.take() else {
            return CloseReport::default();
        };
        shared.stop(Stop::Flush);
        let ended = shared.wait(by, |phase| matches!(phase, Phase::Ended(_)));
        if !ended {
            // The thread hangs in the disk; it ends when it comes back.
            shared.stop(Stop::Abandon);
        }
        let mut state = shared.lock();
        let error = match &state.phase {
            Phase::Ended(failure) => failure.as_ref().map(TransportError::again),
            Phase::Opening | Phase::Open => Some(TransportError::new(
                "close",
                endpoint(&self.config.folder),
                RetryClass::Exhausted,
                "the disk did not answer in time",
            )),
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
        if let Some(shared) = &self.shared {
            shared.stop(Stop::Flush);
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
