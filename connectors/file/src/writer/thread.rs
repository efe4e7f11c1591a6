//! The thread that writes, and the state that it shares with the writer's owner.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use baler_common::transport::{Chunk, Notify, NotifyCell, RetryClass, TransportError, Window};

use super::WriterStats;
use super::appender::Appender;
use crate::config::FileWriterConfig;
use crate::error::{endpoint, io_error};

/// One life of the thread: from the opening of the folder to the first error or the end.
pub(super) struct WriterThread {
    state: Mutex<ThreadState>,
    /// The thread has something to do.
    work: Condvar,
    /// The phase changed.
    changed: Condvar,
    notify: Arc<NotifyCell>,
}

#[derive(Default)]
pub(super) struct ThreadState {
    pub(super) phase: Phase,
    /// Offered and not yet taken by the thread.
    pub(super) queue: VecDeque<Chunk>,
    /// Offered and not yet confirmed, `queue` included.
    pub(super) window: Window,
    /// Tickets that are confirmed and not yet fetched by the owner.
    pub(super) confirmed: Vec<u64>,
    /// How many free bytes a full folder must have before it is worth opening it again.
    pub(super) wanted_bytes: u64,
    stop: StopRequest,
}

#[derive(Default)]
pub(super) enum Phase {
    #[default]
    Opening,
    Open,
    /// The thread has ended, with this error if it did not end by request.
    Ended(Option<TransportError>),
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum StopRequest {
    /// End now.
    Abandon,
    /// Write all queued chunks, then end.
    Flush,
    #[default]
    No,
}

impl WriterThread {
    /// Starts the thread, which opens the folder first.
    pub(super) fn start(
        config: &FileWriterConfig,
        stats: &Arc<Mutex<WriterStats>>,
        notify: Arc<NotifyCell>,
        wanted_bytes: u64,
    ) -> Result<Arc<Self>, TransportError> {
        let shared = Arc::new(Self {
            state: Mutex::new(ThreadState {
                wanted_bytes,
                ..ThreadState::default()
            }),
            work: Condvar::new(),
            changed: Condvar::new(),
            notify,
        });
        let (seen, settings, stats) = (Arc::clone(&shared), config.clone(), Arc::clone(stats));
        let run = move || {
            let ran = catch_unwind(AssertUnwindSafe(|| seen.run(&settings, stats)));
            seen.end(ran.unwrap_or_else(|_| {
                let endpoint = endpoint(&settings.folder);
                let message = "the writing thread panicked";
                Err(TransportError::new(
                    "write to",
                    endpoint,
                    RetryClass::Retry,
                    message,
                ))
            }));
        };
        let thread = thread::Builder::new().name("baler-file".into());
        let spawned = thread.spawn(run);
        spawned.map_err(|error| io_error("start a thread for", &config.folder, error))?;
        Ok(shared)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ThreadState> {
        // Nothing that holds the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        self.work.notify_one();
    }

    pub(super) fn stop(&self, stop: StopRequest) {
        self.lock().stop = stop;
        self.wake();
    }

    /// Waits until `wanted` accepts the phase, `by` at most; returns whether it does.
    pub(super) fn wait(&self, by: Instant, wanted: impl Fn(&Phase) -> bool) -> bool {
        let left = by.saturating_duration_since(Instant::now());
        let (state, _) = self
            .changed
            .wait_timeout_while(self.lock(), left, |state| !wanted(&state.phase))
            .unwrap_or_else(PoisonError::into_inner);
        wanted(&state.phase)
    }

    fn run(
        &self,
        config: &FileWriterConfig,
        stats: Arc<Mutex<WriterStats>>,
    ) -> Result<(), TransportError> {
        let wanted_bytes = self.lock().wanted_bytes;
        let mut appender = Appender::open(config, stats, wanted_bytes)?;
        self.lock().phase = Phase::Open;
        self.changed.notify_all();
        self.notify.notify();
        loop {
            let chunks = self.next_chunks();
            let written = appender.append(chunks.as_deref().unwrap_or_default());
            let synced = appender.sync();
            // Chunks that were written before a failure count, if they can be made durable.
            if synced.is_ok() {
                self.confirm(appender.take_written());
            }
            if let Err(error) = written.and(synced) {
                self.lock().wanted_bytes = appender.wanted_bytes();
                return Err(error);
            }
            if chunks.is_none() {
                return Ok(());
            }
        }
    }

    /// Waits for chunks to write; returns nothing when the thread is to end.
    fn next_chunks(&self) -> Option<Vec<Chunk>> {
        let waits =
            |state: &mut ThreadState| state.stop == StopRequest::No && state.queue.is_empty();
        let waited = self.work.wait_while(self.lock(), waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let ends = state.stop == StopRequest::Abandon || state.queue.is_empty();
        (!ends).then(|| state.queue.drain(..).collect())
    }

    /// Confirms the oldest chunks in flight.
    fn confirm(&self, chunks: usize) {
        let mut state = self.lock();
        for _ in 0..chunks {
            let ticket = state.window.remove_oldest();
            state.confirmed.extend(ticket);
        }
        drop(state);
        if chunks > 0 {
            self.notify.notify();
        }
    }

    fn end(&self, outcome: Result<(), TransportError>) {
        let mut state = self.lock();
        state.phase = Phase::Ended(outcome.err());
        // Chunks that were not confirmed belong to the owner again.
        state.queue.clear();
        drop(state);
        self.changed.notify_all();
        self.notify.notify();
    }
}
