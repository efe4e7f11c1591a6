#![doc = include_str!("thread_writer/README.md")]

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Failure, Notify, NotifyCell,
    Outcome, Probes, Rejected, RetryClass, Sending, TransportError, WriterState, WriterStats,
};

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
        let mut state = self.0.writer.lock();
        for outcome in outcomes {
            state.answer_oldest(outcome);
        }
        self.0.writer.answered(state, true);
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
    thread: Arc<WriterThread>,
    probes: Option<Arc<dyn Probes>>,
}

impl<M: BlockingMedium> ThreadWriter<M> {
    /// Creates a writer. Like every writer it starts closed.
    pub fn new(medium: M) -> Self {
        Self {
            capability: medium.capability(),
            thread: Arc::new(WriterThread::new(&medium, Arc::default(), None)),
            medium,
            counts: Arc::default(),
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

    fn late(&self, operation: &'static str, class: RetryClass) -> TransportError {
        let endpoint = self.thread.writer.endpoint();
        TransportError::new(operation, endpoint, class, "no answer in time")
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
        self.thread.writer.offer(chunk, &self.capability)?;
        self.thread.work.notify_one();
        Ok(())
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        self.thread.writer.delivery_reports(out)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.thread.writer.notify().set(notify);
    }

    fn set_probes(&mut self, probes: Arc<dyn Probes>) {
        self.probes = Some(probes);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        // Wait for a thread that is still opening since an earlier call; do not start a second one.
        if !self.thread.is_opening() {
            self.thread.stop(StopRequest::Abandon);
            let closed = Failure::retry("write to", "it was closed");
            self.thread.writer.fail(closed);
            if !self.thread.has_ended(by) {
                return Err(self.late("close", RetryClass::Retry));
            }
            let notify = Arc::clone(self.thread.writer.notify());
            let thread = WriterThread::new(&self.medium, notify, self.probes.clone());
            let counts = Arc::clone(&self.counts);
            self.thread = thread.start(self.medium.clone(), counts, by)?;
        }
        self.thread.writer.opened(by, Instant::now())
    }

    fn stats(&self) -> WriterStats {
        M::stats(&self.counts())
    }

    fn close(self: Box<Self>, by: Instant) -> CloseReport {
        let thread = &self.thread;
        thread.stop(StopRequest::Flush);
        let ended = thread.has_ended(by);
        if !ended {
            // A thread that hangs in its medium ends when the medium answers.
            thread.stop(StopRequest::Abandon);
        }
        let failed = thread.writer.lock().failure().map(TransportError::again);
        let late = || self.late("close", RetryClass::Exhausted);
        let error = if ended { failed } else { Some(late()) };
        thread.writer.close_report(error)
    }
}

impl<M: BlockingMedium> Drop for ThreadWriter<M> {
    fn drop(&mut self) {
        self.thread.stop(StopRequest::Flush);
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
    writer: WriterState<Life>,
    /// Notified when there is work for the thread.
    work: Condvar,
    probes: Option<Arc<dyn Probes>>,
    abandon: Abandon,
}

#[derive(Default)]
struct Life {
    is_running: bool,
    stop: StopRequest,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum StopRequest {
    /// End now.
    Abandon,
    /// Write all queued chunks, then end.
    Flush,
    #[default]
    No,
}

impl WriterThread {
    fn new<M: BlockingMedium>(
        medium: &M,
        notify: Arc<NotifyCell>,
        probes: Option<Arc<dyn Probes>>,
    ) -> Self {
        Self {
            writer: WriterState::new(medium.endpoint(), notify, Life::default()),
            work: Condvar::new(),
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
        this.writer.lock().medium.is_running = true;
        let run = move || {
            let ran = Failure::catching("write to", || this.run(&medium, &counts, by));
            this.end(ran.unwrap_or_else(|failure| Err(failure.at(this.writer.endpoint()))));
        };
        let spawned = thread::Builder::new().name(M::THREAD.into()).spawn(run);
        let endpoint = started.writer.endpoint();
        spawned.map_err(|error| {
            TransportError::caused_by("start a thread for", endpoint, RetryClass::Retry, error)
        })?;
        Ok(started)
    }

    fn is_opening(&self) -> bool {
        let state = self.writer.lock();
        state.medium.is_running && state.is_closed()
    }

    /// Ends the thread, unless a stronger request has.
    fn stop(&self, stop: StopRequest) {
        self.writer
            .update(|state| state.medium.stop = stop.min(state.medium.stop));
        if stop == StopRequest::Abandon {
            self.abandon.abandon();
        }
        self.work.notify_one();
    }

    /// Waits until the thread has ended, until `by` at most. Returns whether it has.
    fn has_ended(&self, by: Instant) -> bool {
        let ended = |state: &Sending<Life>| !state.medium.is_running;
        ended(&self.writer.wait(by, Instant::now(), ended))
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
        self.writer.open();
        self.writer.notify().notify();
        while let Some(chunks) = self.next_chunks(output.tend()?) {
            if !chunks.is_empty() {
                output.write(&chunks, Answers(self))?;
            }
        }
        if self.writer.lock().medium.stop == StopRequest::Abandon {
            return Ok(());
        }
        output.finish()
    }

    /// Waits for chunks to write, for this time at most. Returns `None` when the thread must end.
    fn next_chunks(&self, wait: Duration) -> Option<Vec<Chunk>> {
        let waits = |state: &mut Sending<Life>| {
            state.medium.stop == StopRequest::No && state.queue.is_empty()
        };
        let waited = self
            .work
            .wait_timeout_while(self.writer.lock(), wait, waits);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let ends = match state.medium.stop {
            StopRequest::Abandon => true,
            StopRequest::Flush => state.queue.is_empty(),
            StopRequest::No => false,
        };
        (!ends).then(|| state.queue.drain(..).collect())
    }

    fn end(&self, outcome: Result<(), TransportError>) {
        if let Err(error) = outcome {
            self.writer.fail_with(error);
        }
        self.writer.update(|state| state.medium.is_running = false);
        self.writer.notify().notify();
    }
}
