//! A bounded pipe: its stage runs on a thread of its own.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::mutex::lock;
use baler_common::transport::panic_text;

use crate::error::AnalysisError;
use crate::last_time::LastTime;
use crate::parcel::{Held, Parcel};
use crate::stage::Stage;

/// How often a call that waits for the pipe checks the deadline.
const TICK: Duration = Duration::from_millis(20);

/// A pipe with this number of records is full, whatever the number of parcels. A chunk of a hundred
/// bytes may have millions of records.
const MAX_RECORDS: usize = 64 << 10;

/// Runs a stage on a thread of its own. It holds at most `capacity` parcels, and takes no further
/// parcel while it holds 65,536 records.
///
/// Only [`Stage::accept`] of a full pipe and [`Stage::finish`] wait for the thread. So backpressure
/// reaches the reader. A [`Source`](crate::Source) calls [`Stage::ready`] before. [`Stage::flush`]
/// and [`Stage::idle`] pass the call to the thread and return at once. The next call returns the
/// first error of the stage.
///
/// With [`Pipe::until`], waiting ends at a deadline, even if the stage still waits. The thread then
/// keeps its parcels, and their source gives them back to the medium.
pub struct Pipe {
    stage: &'static str,
    capacity: usize,
    shared: Arc<PipeShared>,
    /// The last message, unless a parcel was sent after it.
    asked: Option<Message>,
    deadline: Box<dyn Fn() -> Option<Instant> + Send>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Message {
    Flush,
    Idle,
}

#[derive(Debug)]
enum PipeItem {
    Message(Message),
    Parcel(Held),
}

/// The state of a pipe, for its owner and its thread.
#[derive(Debug, Default)]
struct PipeShared {
    state: Mutex<PipeState>,
    changed: Condvar,
    progress: Progress,
}

#[derive(Debug, Default)]
struct PipeState {
    queue: VecDeque<PipeItem>,
    /// Queued or in work: messages and parcels together, parcels, and the records of the parcels.
    items: usize,
    parcels: usize,
    records: usize,
    /// The last answer of the stage's `idle`.
    holds_back: bool,
    /// Nothing more will be queued.
    is_closed: bool,
    /// The thread has ended.
    has_ended: bool,
    failure: Option<AnalysisError>,
}

/// The progress of the parcels in pipes. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<ProgressState>);

#[derive(Debug, Default)]
struct ProgressState {
    waiting: AtomicUsize,
    /// The last time a parcel was taken.
    moved: LastTime,
}

impl Progress {
    /// Returns how many parcels wait in pipes, or are being processed by their stages.
    pub fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Acquire)
    }

    /// Returns for how long no parcel has moved although some wait.
    pub fn stalled(&self) -> Duration {
        if self.waiting() == 0 {
            return Duration::ZERO;
        }
        self.0.moved.get().elapsed()
    }

    /// Records that a parcel was taken.
    pub(crate) fn moved(&self) {
        self.0.moved.note();
    }

    fn begins(&self, parcels: usize) {
        // Waiting begins now.
        if self.waiting() == 0 {
            self.moved();
        }
        self.0.waiting.fetch_add(parcels, Ordering::AcqRel);
    }

    fn ends(&self, parcels: usize) {
        self.moved();
        self.0.waiting.fetch_sub(parcels, Ordering::AcqRel);
    }
}

impl Pipe {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The operating system cannot start a thread.
    pub fn spawn(capacity: usize, stage: impl Stage + 'static) -> std::io::Result<Self> {
        Self::watched(capacity, stage, Progress::default())
    }

    /// Starts the thread, and records in `progress` how its parcels move.
    ///
    /// # Errors
    ///
    /// The operating system cannot start a thread.
    pub fn watched(
        capacity: usize,
        stage: impl Stage + 'static,
        progress: Progress,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(PipeShared {
            progress,
            ..PipeShared::default()
        });
        let name = stage.name();
        let seen = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(format!("baler-{name}"));
        thread.spawn(move || seen.run(stage))?;
        Ok(Self {
            stage: name,
            capacity: capacity.max(1),
            shared,
            asked: None,
            deadline: Box::new(|| None),
        })
    }

    /// Sets a deadline for waiting for the stage. `deadline` is called repeatedly; `None` means no
    /// limit.
    #[must_use]
    pub fn until(mut self, deadline: impl Fn() -> Option<Instant> + Send + 'static) -> Self {
        self.deadline = Box::new(deadline);
        self
    }

    fn send(&self, work: PipeItem) -> Result<(), AnalysisError> {
        let mut state = self.shared.check()?;
        if state.is_closed || state.has_ended {
            return Err(AnalysisError::stage(self.stage, "the pipe has ended"));
        }
        let (parcels, records) = work.size();
        state.items += 1;
        state.parcels += parcels;
        state.records += records;
        self.shared.progress.begins(parcels);
        state.queue.push_back(work);
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Passes a message to the stage, unless it was the last one.
    fn ask(&mut self, message: Message) -> Result<(), AnalysisError> {
        if self.asked == Some(message) {
            return self.shared.check().map(drop);
        }
        self.send(PipeItem::Message(message))?;
        self.asked = Some(message);
        Ok(())
    }

    /// Returns an error when the deadline is over.
    fn in_time(&self) -> Result<(), AnalysisError> {
        match (self.deadline)() {
            Some(deadline) if Instant::now() >= deadline => {
                Err(AnalysisError::Stalled { stage: self.stage })
            }
            _ => Ok(()),
        }
    }
}

impl Stage for Pipe {
    fn name(&self) -> &'static str {
        self.stage
    }

    fn ready(&mut self, by: Instant) -> Result<bool, AnalysisError> {
        let capacity = self.capacity;
        let is_full = |state: &PipeState| {
            let is_full = state.parcels >= capacity || state.records >= MAX_RECORDS;
            is_full && !state.has_ended
        };
        let is_ready = !self.shared.wait_while(by, is_full);
        self.shared.check().map(|_| is_ready)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        while !self.ready(Instant::now() + TICK)? {
            self.in_time()?;
        }
        self.asked = None;
        self.send(PipeItem::Parcel(Held::of(parcel)))
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.ask(Message::Flush)
    }

    fn idle(&mut self) -> Result<bool, AnalysisError> {
        let state = self.shared.check()?;
        let (is_done, holds_back) = (state.items == 0, state.holds_back);
        drop(state);
        if is_done && self.asked == Some(Message::Idle) {
            if !holds_back {
                return Ok(false);
            }
            // The stage may flush from now on.
            self.asked = None;
        }
        self.ask(Message::Idle).map(|()| true)
    }

    fn finish(&mut self) -> Result<(), AnalysisError> {
        lock(&self.shared.state).is_closed = true;
        self.shared.changed.notify_all();
        let runs = |state: &PipeState| !state.has_ended;
        while self.shared.wait_while(Instant::now() + TICK, runs) {
            self.in_time()?;
        }
        self.shared.check().map(drop)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // `finish` returns the errors.
        drop(self.finish());
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe")
            .field("stage", &self.stage)
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

impl PipeItem {
    /// Returns the number of parcels, and the number of their records.
    fn size(&self) -> (usize, usize) {
        match self {
            Self::Message(_) => (0, 0),
            Self::Parcel(held) => (held.len(), held.parcels().map(Parcel::len).sum()),
        }
    }
}

impl PipeShared {
    /// Returns the first error of the stage, once.
    fn check(&self) -> Result<MutexGuard<'_, PipeState>, AnalysisError> {
        let mut state = lock(&self.state);
        state.failure.take().map_or(Ok(state), Err)
    }

    /// Waits while `condition` holds, until `by` at most; returns whether it still does.
    fn wait_while(&self, by: Instant, condition: impl Fn(&PipeState) -> bool) -> bool {
        let left = by.duration_since(Instant::now());
        let waited = self
            .changed
            .wait_timeout_while(lock(&self.state), left, |state| condition(state));
        condition(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// The main function of the thread.
    fn run(&self, mut stage: impl Stage) {
        let name = stage.name();
        let mut result = Ok(());
        while result.is_ok() {
            let Some(work) = self.take() else { break };
            let (parcels, records) = work.size();
            result = guarded(name, || self.process(&mut stage, work));
            self.progress.ends(parcels);
            let mut state = lock(&self.state);
            state.items -= 1;
            state.parcels -= parcels;
            state.records -= records;
            drop(state);
            self.changed.notify_all();
        }
        if result.is_ok() {
            result = guarded(name, || stage.finish());
        }
        // A panic while the stage is dropped must not hide an error.
        drop(catch_unwind(AssertUnwindSafe(|| drop(stage))));
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.failure = result.err();
        let left = std::mem::take(&mut state.queue);
        drop(state);
        // The remaining parcels must go back to the medium before the end is visible.
        self.progress
            .ends(left.iter().map(|work| work.size().0).sum());
        drop(left);
        lock(&self.state).has_ended = true;
        self.changed.notify_all();
    }

    /// Waits for work; returns `None` when the pipe is closed and empty.
    fn take(&self) -> Option<PipeItem> {
        let is_idle = |state: &mut PipeState| state.queue.is_empty() && !state.is_closed;
        let woken = self.changed.wait_while(lock(&self.state), is_idle);
        woken
            .unwrap_or_else(PoisonError::into_inner)
            .queue
            .pop_front()
    }

    fn process(&self, stage: &mut impl Stage, work: PipeItem) -> Result<(), AnalysisError> {
        match work {
            PipeItem::Message(Message::Flush) => stage.flush(),
            PipeItem::Message(Message::Idle) => {
                let holds_back = stage.idle()?;
                lock(&self.state).holds_back = holds_back;
                Ok(())
            }
            PipeItem::Parcel(mut held) => {
                held.parcels()
                    .try_for_each(|parcel| stage.accept(parcel.clone()))?;
                held.release_all();
                Ok(())
            }
        }
    }
}

fn guarded(
    stage: &'static str,
    call: impl FnOnce() -> Result<(), AnalysisError>,
) -> Result<(), AnalysisError> {
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|panic| Err(panicked(stage, panic.as_ref())))
}

/// Returns the error for a stage that panicked.
pub(crate) fn panicked(stage: &'static str, panic: &(dyn std::any::Any + Send)) -> AnalysisError {
    let message = panic_text(panic).into();
    AnalysisError::StagePanicked { stage, message }
}
