//! The writing end: a window in front of the thread that writes.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Durability, Notify, Order, Outcome,
    RejectReason, Rejected, RetryClass, TransportError,
};

use crate::appender::Appender;
use crate::config::{FileWriterConfig, SyncPolicy};
use crate::error::endpoint;
use crate::segment::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES};
use crate::stats::{WriterCounters, WriterStats};

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
    notify: Option<Arc<dyn Notify>>,
    /// What a full folder has to have room for before it is opened again.
    wanted_bytes: u64,
}

/// What owner and thread share.
struct Shared {
    state: Mutex<State>,
    /// Something to do for the thread.
    work: Condvar,
    /// The phase changed.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// Offered and not yet taken by the thread.
    queue: VecDeque<Chunk>,
    /// Offered and not yet confirmed, oldest first: ticket and bytes.
    in_flight: VecDeque<(u64, usize)>,
    in_flight_bytes: usize,
    confirmed: Vec<u64>,
    /// An offer was refused because the window is full: there is nothing to wait for.
    starved: bool,
    /// What a full folder has to have room for.
    wanted_bytes: u64,
    stop: Stop,
    notify: Option<Arc<dyn Notify>>,
}

#[derive(Default)]
enum Phase {
    #[default]
    Opening,
    Open,
    /// The thread ended, with this error if it did not end by request.
    Ended(Option<Failure>),
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Stop {
    #[default]
    No,
    /// Write what is queued, then end.
    Flush,
    /// End now.
    Abandon,
}

/// A [`TransportError`] that can be told more than once.
#[derive(Clone)]
struct Failure {
    operation: &'static str,
    endpoint: Box<str>,
    message: Box<str>,
    class: RetryClass,
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
            notify: None,
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

    fn start_thread(&self) -> Result<Arc<Shared>, TransportError> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                notify: self.notify.clone(),
                wanted_bytes: self.wanted_bytes,
                ..State::default()
            }),
            work: Condvar::new(),
            changed: Condvar::new(),
        });
        let for_thread = Arc::clone(&shared);
        let config = self.config.clone();
        let counters = Arc::clone(&self.counters);
        thread::Builder::new()
            .name("baler-file".into())
            .spawn(move || {
                let _end = EndOnPanic(&for_thread);
                let outcome = for_thread.run(&config, counters);
                for_thread.end(outcome.err().map(Failure::from));
            })
            .map_err(|error| {
                crate::error::io_error("start a thread for", &self.config.folder, error)
            })?;
        Ok(shared)
    }
}

impl ChunkWriter for FileWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let max_chunk_bytes = self.capability.max_chunk_bytes.get();
        if chunk.bytes.len() > max_chunk_bytes {
            let reason = RejectReason::TooLarge { max_chunk_bytes };
            return Err(Rejected { chunk, reason });
        }
        let broken = |chunk, error| {
            let reason = RejectReason::Broken(Box::new(error));
            Err(Rejected { chunk, reason })
        };
        let Some(shared) = &self.shared else {
            return broken(chunk, self.not_open());
        };
        let mut state = shared.lock();
        match &state.phase {
            Phase::Open => {}
            Phase::Ended(Some(failure)) => return broken(chunk, failure.error()),
            Phase::Opening | Phase::Ended(None) => return broken(chunk, self.not_open()),
        }
        let bytes = state.in_flight_bytes.saturating_add(chunk.bytes.len());
        let is_full = state.in_flight.len() >= self.capability.window_chunks.get()
            || (!state.in_flight.is_empty() && bytes > self.capability.window_bytes.get());
        if is_full {
            state.starved = true;
            drop(state);
            shared.work.notify_one();
            let reason = RejectReason::Full;
            return Err(Rejected { chunk, reason });
        }
        state.in_flight.push_back((chunk.ticket, chunk.bytes.len()));
        state.in_flight_bytes = bytes;
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
            Phase::Ended(Some(failure)) => Err(failure.error()),
            Phase::Opening | Phase::Open | Phase::Ended(None) => Ok(()),
        }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        if let Some(shared) = &self.shared {
            shared.lock().notify = Some(Arc::clone(&notify));
        }
        self.notify = Some(notify);
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
            None => &*self.shared.insert(self.start_thread()?),
        };
        if !shared.wait(by, |phase| !matches!(phase, Phase::Opening)) {
            return Err(busy());
        }
        let failure = match &shared.lock().phase {
            Phase::Ended(failure) => failure.as_ref().map(Failure::error),
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
            Phase::Ended(failure) => failure.as_ref().map(Failure::error),
            Phase::Opening | Phase::Open => Some(TransportError::new(
                "close",
                endpoint(&self.config.folder),
                RetryClass::Exhausted,
                "the disk did not answer in time",
            )),
        };
        CloseReport {
            confirmations: state.confirmed.drain(..).map(confirmed).collect(),
            unconfirmed: state.in_flight.iter().map(|(ticket, _)| *ticket).collect(),
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

/// What the thread is to do next.
enum Work {
    Write(Vec<Chunk>),
    Sync,
    End,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self, stop: Stop) {
        self.lock().stop = stop;
        self.work.notify_one();
    }

    /// Waits until the phase is as wanted; says whether it became so in time.
    fn wait(&self, by: Instant, wanted: impl Fn(&Phase) -> bool) -> bool {
        let left = by.saturating_duration_since(Instant::now());
        let (state, _) = self
            .changed
            .wait_timeout_while(self.lock(), left, |state| !wanted(&state.phase))
            .unwrap_or_else(PoisonError::into_inner);
        wanted(&state.phase)
    }

    /// The thread.
    fn run(
        &self,
        config: &FileWriterConfig,
        counters: Arc<WriterCounters>,
    ) -> Result<(), TransportError> {
        let wanted_bytes = self.lock().wanted_bytes;
        let mut appender = Appender::open(config, counters, wanted_bytes)?;
        self.lock().phase = Phase::Open;
        self.changed.notify_all();
        self.tell();
        let mut window = Unsynced::default();
        loop {
            let work = self.next_work(window.due(config.sync));
            let ends = matches!(work, Work::End);
            let written = match work {
                Work::Write(chunks) => appender.append(&chunks),
                Work::Sync | Work::End => Ok(()),
            };
            window.add(appender.take_written());
            // What was written before a failure counts, if it can be made durable.
            let synced = match config.sync {
                SyncPolicy::None => Ok(()),
                SyncPolicy::Interval(interval) if written.is_ok() && !ends => {
                    match window.is_due(interval) || self.is_starved() {
                        true => appender.sync(),
                        false => continue,
                    }
                }
                SyncPolicy::Chunk | SyncPolicy::Interval(_) => appender.sync(),
            };
            if synced.is_ok() {
                self.confirm(std::mem::take(&mut window).chunks);
            }
            if let Err(error) = written.and(synced) {
                self.lock().wanted_bytes = appender.wanted_bytes();
                return Err(error);
            }
            if ends {
                return Ok(());
            }
        }
    }

    fn next_work(&self, sync_at: Option<Instant>) -> Work {
        let mut state = self.lock();
        loop {
            if state.stop == Stop::Abandon {
                return Work::End;
            }
            if !state.queue.is_empty() {
                return Work::Write(state.queue.drain(..).collect());
            }
            if state.stop == Stop::Flush {
                return Work::End;
            }
            let Some(sync_at) = sync_at else {
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = sync_at.saturating_duration_since(Instant::now());
            if left.is_zero() || state.starved {
                return Work::Sync;
            }
            (state, _) = self
                .work
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn is_starved(&self) -> bool {
        self.lock().starved
    }

    /// Confirms the oldest chunks in flight.
    fn confirm(&self, chunks: usize) {
        let mut state = self.lock();
        state.starved = false;
        for _ in 0..chunks {
            let Some((ticket, bytes)) = state.in_flight.pop_front() else {
                break;
            };
            state.in_flight_bytes = state.in_flight_bytes.saturating_sub(bytes);
            state.confirmed.push(ticket);
        }
        drop(state);
        if chunks > 0 {
            self.tell();
        }
    }

    fn end(&self, failure: Option<Failure>) {
        {
            let mut state = self.lock();
            if !matches!(state.phase, Phase::Ended(_)) {
                state.phase = Phase::Ended(failure);
            }
            // What was not confirmed is the owner's again.
            state.queue.clear();
        }
        self.changed.notify_all();
        self.tell();
    }

    /// Tells the owner, with no lock held.
    fn tell(&self) {
        let notify = self.lock().notify.clone();
        if let Some(notify) = notify {
            notify.notify();
        }
    }
}

/// Chunks that were written and not yet forced to stable storage.
#[derive(Default)]
struct Unsynced {
    chunks: usize,
    since: Option<Instant>,
}

impl Unsynced {
    fn add(&mut self, chunks: usize) {
        if chunks > 0 {
            self.chunks = self.chunks.saturating_add(chunks);
            self.since.get_or_insert_with(Instant::now);
        }
    }

    fn due(&self, policy: SyncPolicy) -> Option<Instant> {
        match policy {
            SyncPolicy::Interval(interval) => self.since.map(|since| since + interval),
            SyncPolicy::Chunk | SyncPolicy::None => None,
        }
    }

    fn is_due(&self, interval: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= interval)
    }
}

/// Ends the phase even if the thread panics, so that nobody waits for it forever.
struct EndOnPanic<'a>(&'a Shared);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(Some(Failure {
                operation: "write to",
                endpoint: "file:".into(),
                message: "the writing thread panicked".into(),
                class: RetryClass::Retry,
            }));
        }
    }
}

impl Failure {
    fn error(&self) -> TransportError {
        TransportError::new(
            self.operation,
            self.endpoint.clone(),
            self.class,
            self.message.clone(),
        )
    }
}

impl From<TransportError> for Failure {
    fn from(error: TransportError) -> Self {
        Self {
            operation: error.operation,
            endpoint: error.endpoint,
            message: error.message,
            class: error.class,
        }
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
