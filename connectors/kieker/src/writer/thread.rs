//! The thread that decodes and writes, and the state that it shares with the writer's owner.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use baler_common::container::ChunkDecoder;
use baler_common::record::Catalog;
use baler_common::transport::{Chunk, Confirmation, Failure, Notify, NotifyCell, Outcome, Window};

use super::output::{Output, Target, WriteError};
use super::{WriterCounts, fitting};

/// One life of the thread: from the opening of the output to the first failure or the end.
pub(super) struct WriterThread {
    state: Mutex<ThreadState>,
    /// The thread has something to do.
    work: Condvar,
    /// The phase changed.
    changed: Condvar,
    notify: Arc<NotifyCell>,
    /// Ends a wait of the output for its medium.
    interrupt: tokio::sync::watch::Sender<bool>,
}

#[derive(Default)]
pub(super) struct ThreadState {
    pub(super) phase: Phase,
    /// Offered and not yet taken by the thread.
    pub(super) queue: VecDeque<Chunk>,
    /// Offered and not yet confirmed, `queue` included.
    pub(super) window: Window,
    /// What the owner has not fetched.
    pub(super) confirmed: Vec<Confirmation>,
    stop: StopRequest,
}

#[derive(Default)]
pub(super) enum Phase {
    #[default]
    Opening,
    Open,
    /// The thread has ended, with this failure if it did not end by request.
    Ended(Option<Failure>),
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum StopRequest {
    /// End now.
    Abandon,
    /// Write what is queued, then end.
    Flush,
    #[default]
    No,
}

impl WriterThread {
    /// Starts the thread, which opens the output first, `by` at most.
    pub(super) fn start<T: Target>(
        target: &T,
        catalog: Arc<Catalog>,
        counts: Arc<Mutex<WriterCounts>>,
        (notify, by): (Arc<NotifyCell>, Instant),
    ) -> Result<Arc<Self>, Failure> {
        let started = Arc::new(Self {
            state: Mutex::default(),
            work: Condvar::new(),
            changed: Condvar::new(),
            notify,
            interrupt: tokio::sync::watch::Sender::new(false),
        });
        let (this, target) = (Arc::clone(&started), target.clone());
        let run = move || {
            let ran = catch_unwind(AssertUnwindSafe(|| this.run(&target, catalog, &counts, by)));
            this.end(ran.unwrap_or_else(|_| {
                Err(Failure::retry("write to", "the writing thread panicked"))
            }));
        };
        let thread = thread::Builder::new().name("baler-kieker".into());
        let spawned = thread.spawn(run);
        spawned.map_err(|error| Failure::retry("start a thread for", error.to_string()))?;
        Ok(started)
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
        if stop == StopRequest::Abandon {
            self.interrupt.send_replace(true);
        }
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

    fn run<T: Target>(
        &self,
        target: &T,
        catalog: Arc<Catalog>,
        counts: &Mutex<WriterCounts>,
        by: Instant,
    ) -> Result<(), Failure> {
        let mut output = target.open(self.interrupt.subscribe(), by)?;
        let mut decoder = ChunkDecoder::default().with_catalog(Arc::clone(&catalog));
        self.lock().phase = Phase::Open;
        self.changed.notify_all();
        self.notify.notify();
        while let Some(chunk) = self.next_chunk() {
            let batch = fitting(&mut decoder, &catalog, &chunk);
            let written = batch.and_then(|batch| output.write(&batch));
            let outcome = match written {
                Ok(()) => Outcome::Confirmed,
                Err(WriteError::Refused(message)) => {
                    let failure = Failure::last("write to", message);
                    Outcome::Refused(failure.at(&target.endpoint()))
                }
                Err(WriteError::Broken(failure)) => return Err(failure),
            };
            count(counts, &chunk, &outcome);
            self.confirm(outcome);
        }
        if self.lock().stop == StopRequest::Abandon {
            return Ok(());
        }
        output.finish()
    }

    /// Waits for a chunk to write; returns nothing when the thread is to end.
    fn next_chunk(&self) -> Option<Chunk> {
        let waits =
            |state: &mut ThreadState| state.stop == StopRequest::No && state.queue.is_empty();
        let waited = self.work.wait_while(self.lock(), waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        (state.stop != StopRequest::Abandon)
            .then(|| state.queue.pop_front())
            .flatten()
    }

    /// Tells what became of the oldest chunk.
    fn confirm(&self, outcome: Outcome) {
        let mut state = self.lock();
        if let Some(ticket) = state.window.remove_oldest() {
            state.confirmed.push(Confirmation { ticket, outcome });
        }
        drop(state);
        self.notify.notify();
    }

    fn end(&self, outcome: Result<(), Failure>) {
        let mut state = self.lock();
        state.phase = Phase::Ended(outcome.err());
        // Chunks that were not confirmed belong to the owner again.
        state.queue.clear();
        drop(state);
        self.changed.notify_all();
        self.notify.notify();
    }
}

fn count(counts: &Mutex<WriterCounts>, chunk: &Chunk, outcome: &Outcome) {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let records = u64::from(chunk.meta.records);
    match outcome {
        Outcome::Refused(_) => {
            counts.refused_chunks += 1;
            counts.refused_records += records;
        }
        Outcome::Confirmed | Outcome::Spooled => {
            counts.chunks += 1;
            counts.records += records;
        }
    }
}
