#![doc = include_str!("../README.md")]

pub mod files;
mod lock;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Failure, Notify, NotifyCell,
    Outcome, Probes, Rejected, RetryClass, TransportError, Window, WriterStats,
};

pub use lock::FileLock;

/// The settings of a medium that is written by blocking calls.
pub trait BlockingMedium: Clone + fmt::Debug + Send + 'static {
    /// An open connection or folder.
    type Output: BlockingOutput;

    /// Counts over all openings of a writer.
    type Counts: Clone + Default + fmt::Debug + Send + 'static;

    /// The name of a writer's thread.
    const THREAD: &'static str;

    /// Returns the capability of the medium.
    fn capability(&self) -> Capability;

    /// Returns the endpoint for errors, without credentials.
    fn endpoint(&self) -> String;

    /// Returns the figures of the medium that are among these counts.
    fn stats(counts: &Self::Counts) -> WriterStats {
        let _ = counts;
        WriterStats::default()
    }

    /// Opens the medium.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    fn open(&self, opening: Opening<'_, Self::Counts>) -> Result<Self::Output, TransportError>;
}

/// The arguments of [`BlockingMedium::open`].
#[derive(Debug)]
pub struct Opening<'a, C> {
    /// The counts over all openings of the writer.
    pub counts: &'a Arc<Mutex<C>>,
    /// Ends calls of the output that wait.
    pub abandon: &'a Abandon,
    /// The probes of the program, if the writer's owner has some.
    pub probes: Option<&'a Arc<dyn Probes>>,
    /// The end of the time for opening, if the medium can bound that.
    pub by: Instant,
}

/// An open connection or folder. Its calls block.
pub trait BlockingOutput {
    /// Writes chunks, and adds the outcome of each to `answers`, in their order, as soon as it is
    /// known.
    ///
    /// # Errors
    ///
    /// The medium is broken. Chunks without an outcome are in doubt.
    fn write(&mut self, chunks: &[Chunk], answers: Answers<'_>) -> Result<(), TransportError>;

    /// Does other work than writing, before the thread waits for chunks. Returns how long it may
    /// wait before the next call; by default there is no other work.
    ///
    /// # Errors
    ///
    /// The medium is broken.
    fn tend(&mut self) -> Result<Duration, TransportError> {
        Ok(Duration::MAX)
    }

    /// Ends the output after the last chunk. Not called when the output is given up.
    ///
    /// # Errors
    ///
    /// Written chunks may not have arrived.
    fn finish(self) -> Result<(), TransportError>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// Passes the outcomes of chunks to the owner of a writer.
#[derive(Clone, Copy)]
pub struct Answers<'a>(&'a WriterThread);

impl Answers<'_> {
    /// Adds the outcomes of the oldest chunks that have none, and wakes the owner.
    pub fn add(self, outcomes: impl IntoIterator<Item = Outcome>) {
        let mut state = self.0.lock();
        for outcome in outcomes {
            if let Some(ticket) = state.window.remove_oldest() {
                state.confirmed.push(DeliveryReport { ticket, outcome });
            }
        }
        drop(state);
        self.0.notify.notify();
    }
}

impl fmt::Debug for Answers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answers")
    }
}

/// Ends a call of an output that waits for its medium, when its owner gives the output up.
#[derive(Default)]
pub struct Abandon(Mutex<AbandonState>);

#[derive(Default)]
struct AbandonState {
    is_abandoned: bool,
    call: Option<Box<dyn FnOnce() + Send>>,
}

impl Abandon {
    /// Sets the function to call when the output is given up. Calls it at once if that has
    /// happened.
    pub fn set(&self, call: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        if state.is_abandoned {
            drop(state);
            call();
        } else {
            state.call = Some(Box::new(call));
        }
    }

    fn abandon(&self) {
        let mut state = self.lock();
        state.is_abandoned = true;
        let call = state.call.take();
        drop(state);
        if let Some(call) = call {
            call();
        }
    }

    fn lock(&self) -> MutexGuard<'_, AbandonState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Abandon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Abandon")
    }
}

/// A [`ChunkWriter`] for a [`BlockingMedium`]. A thread writes, so that
/// [`offer`](ChunkWriter::offer) never blocks.
///
/// After a drop without [`close`](ChunkWriter::close), the thread writes the queued chunks and ends
/// by itself.
pub struct ThreadWriter<M: BlockingMedium> {
    medium: M,
    capability: Capability,
    counts: Arc<Mutex<M::Counts>>,
    thread: Option<Arc<WriterThread>>,
    notify: Arc<NotifyCell>,
    probes: Option<Arc<dyn Probes>>,
}

impl<M: BlockingMedium> ThreadWriter<M> {
    /// Creates a writer. Like every writer it starts closed.
    pub fn new(medium: M) -> Self {
        Self {
            capability: medium.capability(),
            medium,
            counts: Arc::default(),
            thread: None,
            notify: Arc::default(),
            probes: None,
        }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> M::Counts {
        read(&self.counts)
    }

    /// Returns a function that returns the counts, for use while the writer has another owner.
    pub fn counts_handle(&self) -> impl Fn() -> M::Counts + Send + Sync + use<M> {
        let counts = Arc::clone(&self.counts);
        move || read(&counts)
    }

    fn error(&self, operation: &'static str, class: RetryClass, message: &str) -> TransportError {
        TransportError::new(operation, self.medium.endpoint(), class, message)
    }

    fn not_open(&self) -> TransportError {
        self.error("write to", RetryClass::Retry, "the writer is not open")
    }

    fn late(&self, operation: &'static str, class: RetryClass) -> TransportError {
        self.error(operation, class, "no answer in time")
    }

    /// Returns the error if nothing can be written.
    fn broken(&self, phase: &Phase) -> Option<TransportError> {
        match phase {
            Phase::Open => None,
            Phase::Ended(Some(error)) => Some(error.again()),
            Phase::Opening | Phase::Ended(None) => Some(self.not_open()),
        }
    }
}

fn read<C: Clone>(counts: &Mutex<C>) -> C {
    let counts = counts.lock();
    counts.unwrap_or_else(PoisonError::into_inner).clone()
}

impl<M: BlockingMedium> ChunkWriter for ThreadWriter<M> {
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
        if let Some(error) = self.broken(&state.phase) {
            return Err(Rejected::broken(chunk, error));
        }
        if !state.window.take(&chunk, &self.capability) {
            return Err(Rejected::full(chunk));
        }
        state.queue.push_back(chunk);
        drop(state);
        thread.work.notify_one();
        Ok(())
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        let Some(thread) = &self.thread else {
            return Err(self.not_open());
        };
        let mut state = thread.lock();
        out.append(&mut state.confirmed);
        match &state.phase {
            Phase::Ended(Some(error)) => Err(error.again()),
            Phase::Opening | Phase::Open | Phase::Ended(None) => Ok(()),
        }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.notify.set(notify);
    }

    fn set_probes(&mut self, probes: Arc<dyn Probes>) {
        self.probes = Some(probes);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        // Wait for a thread that is still opening since an earlier call; do not start a second one.
        let earlier = self.thread.take_if(|thread| !thread.is_opening());
        if let Some(earlier) = earlier {
            earlier.stop(StopRequest::Abandon);
            if !earlier.wait(by, |phase| matches!(phase, Phase::Ended(_))) {
                self.thread = Some(earlier);
                return Err(self.late("close", RetryClass::Retry));
            }
        }
        let thread = match &self.thread {
            Some(thread) => Arc::clone(thread),
            None => {
                let counts = Arc::clone(&self.counts);
                let started = WriterThread::new(Arc::clone(&self.notify), self.probes.clone());
                started.start(self.medium.clone(), counts, by)?
            }
        };
        self.thread = Some(Arc::clone(&thread));
        if !thread.wait(by, |phase| !matches!(phase, Phase::Opening)) {
            return Err(self.late("open", RetryClass::Retry));
        }
        let error = self.broken(&thread.lock().phase);
        error.map_or(Ok(()), Err)
    }

    fn stats(&self) -> WriterStats {
        M::stats(&self.counts())
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let Some(thread) = self.thread.take() else {
            return CloseReport::default();
        };
        thread.stop(StopRequest::Flush);
        if !thread.wait(by, |phase| matches!(phase, Phase::Ended(_))) {
            // A thread that hangs in its medium ends when the medium answers.
            thread.stop(StopRequest::Abandon);
        }
        let mut state = thread.lock();
        let error = match &state.phase {
            Phase::Ended(error) => error.as_ref().map(TransportError::again),
            Phase::Opening | Phase::Open => Some(self.late("close", RetryClass::Exhausted)),
        };
        CloseReport {
            delivery_reports: std::mem::take(&mut state.confirmed),
            unconfirmed: state.window.tickets().collect(),
            error,
        }
    }
}

impl<M: BlockingMedium> Drop for ThreadWriter<M> {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            thread.stop(StopRequest::Flush);
        }
    }
}

impl<M: BlockingMedium> fmt::Debug for ThreadWriter<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadWriter")
            .field("medium", &self.medium)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

/// One life of the thread: from the opening of the medium to the first error or the end.
struct WriterThread {
    state: Mutex<ThreadState>,
    /// Notified when there is work for the thread.
    work: Condvar,
    /// Notified when the phase changed.
    changed: Condvar,
    notify: Arc<NotifyCell>,
    probes: Option<Arc<dyn Probes>>,
    abandon: Abandon,
}

#[derive(Default)]
struct ThreadState {
    phase: Phase,
    /// Chunks that were offered and not yet taken by the thread.
    queue: VecDeque<Chunk>,
    /// Chunks that were offered and not yet confirmed, `queue` included.
    window: Window,
    /// Reports that the owner has not fetched.
    confirmed: Vec<DeliveryReport>,
    stop: StopRequest,
}

#[derive(Default)]
enum Phase {
    #[default]
    Opening,
    Open,
    /// The thread has ended; with an error unless it ended by request.
    Ended(Option<TransportError>),
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum StopRequest {
    /// End now.
    Abandon,
    /// Write all queued chunks, then end.
    Flush,
    #[default]
    No,
}

impl WriterThread {
    fn new(notify: Arc<NotifyCell>, probes: Option<Arc<dyn Probes>>) -> Self {
        Self {
            state: Mutex::default(),
            work: Condvar::new(),
            changed: Condvar::new(),
            notify,
            probes,
            abandon: Abandon::default(),
        }
    }

    /// Starts the thread, which opens the medium first.
    fn start<M: BlockingMedium>(
        self,
        medium: M,
        counts: Arc<Mutex<M::Counts>>,
        by: Instant,
    ) -> Result<Arc<Self>, TransportError> {
        let started = Arc::new(self);
        let this = Arc::clone(&started);
        let endpoint = medium.endpoint();
        let run = move || {
            let ran = Failure::catching("write to", || this.run(&medium, &counts, by));
            this.end(ran.unwrap_or_else(|failure| Err(failure.at(&medium.endpoint()))));
        };
        let spawned = thread::Builder::new().name(M::THREAD.into()).spawn(run);
        spawned.map_err(|error| {
            TransportError::caused_by("start a thread for", endpoint, RetryClass::Retry, error)
        })?;
        Ok(started)
    }

    fn lock(&self) -> MutexGuard<'_, ThreadState> {
        // No code that holds the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_opening(&self) -> bool {
        matches!(self.lock().phase, Phase::Opening)
    }

    fn stop(&self, stop: StopRequest) {
        self.lock().stop = stop;
        if stop == StopRequest::Abandon {
            self.abandon.abandon();
        }
        self.work.notify_one();
    }

    /// Waits until `wanted` accepts the phase, until `by` at most. Returns whether it does.
    fn wait(&self, by: Instant, wanted: impl Fn(&Phase) -> bool) -> bool {
        let left = by.saturating_duration_since(Instant::now());
        let (state, _) = self
            .changed
            .wait_timeout_while(self.lock(), left, |state| !wanted(&state.phase))
            .unwrap_or_else(PoisonError::into_inner);
        wanted(&state.phase)
    }

    fn run<M: BlockingMedium>(
        &self,
        medium: &M,
        counts: &Arc<Mutex<M::Counts>>,
        by: Instant,
    ) -> Result<(), TransportError> {
        let mut output = medium.open(Opening {
            counts,
            abandon: &self.abandon,
            probes: self.probes.as_ref(),
            by,
        })?;
        self.lock().phase = Phase::Open;
        self.changed.notify_all();
        self.notify.notify();
        while let Some(chunks) = self.next_chunks(output.tend()?) {
            if !chunks.is_empty() {
                output.write(&chunks, Answers(self))?;
            }
        }
        if self.lock().stop == StopRequest::Abandon {
            return Ok(());
        }
        output.finish()
    }

    /// Waits for chunks to write, for this time at most. Returns `None` when the thread must end.
    fn next_chunks(&self, wait: Duration) -> Option<Vec<Chunk>> {
        let waits =
            |state: &mut ThreadState| state.stop == StopRequest::No && state.queue.is_empty();
        let waited = self.work.wait_timeout_while(self.lock(), wait, waits);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let ends = match state.stop {
            StopRequest::Abandon => true,
            StopRequest::Flush => state.queue.is_empty(),
            StopRequest::No => false,
        };
        (!ends).then(|| state.queue.drain(..).collect())
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
