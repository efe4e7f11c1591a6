//! A bounded pipe: the stages behind it run on a thread of their own.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use crate::error::AnalysisError;
use crate::parcel::{Held, Parcel};
use crate::stage::Stage;

/// How often whoever waits for the pipe looks whether the deadline has come.
const TICK: Duration = Duration::from_millis(20);

/// A pipe with this number of records is full, whatever the number of parcels. A chunk of a hundred
/// bytes can have millions of records.
const MAX_RECORDS: usize = 64 << 10;

/// Moves the stages behind it to a thread of their own; holds at most `capacity` parcels, and no
/// further one beside 65,536 records.
///
/// Only [`Stage::accept`] of a full pipe and [`Stage::finish`] wait for the thread: the bound
/// reaches back to the reader. A [`Source`](crate::Source) asks [`Stage::ready`] before.
/// [`Stage::flush`] and [`Stage::idle`] ask the stages behind it, and return at once.
/// The first error of the stages behind it is returned by the next call.
///
/// With [`Pipe::until`], waiting ends at a deadline, whatever the stages wait for. The thread is
/// then left behind with what it holds, which its source gives back to the medium.
pub struct Pipe {
    stage: &'static str,
    capacity: usize,
    sender: Option<Sender<Message>>,
    /// Yields nothing; disconnected when the thread has ended.
    ended: Receiver<()>,
    shared: Arc<PipeState>,
    /// What was last asked of the stages, if nothing was sent since.
    asked: Option<Asked>,
    deadline: Box<dyn Fn() -> Option<Instant> + Send>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Flush,
    Idle,
}

enum Message {
    Ask(Asked),
    Parcel(Held),
}

/// What the pipe and its thread both see.
#[derive(Debug, Default)]
struct PipeState {
    load: Mutex<Load>,
    /// A message is done.
    done: Condvar,
    progress: Progress,
}

#[derive(Debug, Default)]
struct Load {
    /// Messages that are not done: parcels and questions.
    messages: usize,
    parcels: usize,
    /// Records of the parcels.
    records: usize,
    /// What the stages said when they were last idle.
    holds_back: bool,
    failure: Option<AnalysisError>,
    /// The thread takes nothing more.
    is_over: bool,
}

/// Whether what waits in pipes gets on. Cloning shares.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<State>);

#[derive(Debug)]
struct State {
    waiting: AtomicUsize,
    started: Instant,
    /// When something was last taken, in milliseconds after `started`.
    moved_ms: AtomicU64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            started: Instant::now(),
            moved_ms: AtomicU64::new(0),
        }
    }
}

impl Progress {
    /// How many parcels wait in pipes, or are being processed behind them.
    pub fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Acquire)
    }

    /// For how long nothing has moved although something waits.
    pub fn stalled(&self) -> Duration {
        if self.waiting() == 0 {
            return Duration::ZERO;
        }
        let moved = Duration::from_millis(self.0.moved_ms.load(Ordering::Acquire));
        self.0.started.elapsed().saturating_sub(moved)
    }

    /// Notes that something was taken.
    pub(crate) fn moved(&self) {
        let now = self.0.started.elapsed().as_millis();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        self.0.moved_ms.fetch_max(now, Ordering::AcqRel);
    }

    fn begins(&self, parcels: usize) {
        // What begins to wait has not waited yet.
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
    /// The operating system refuses a thread.
    pub fn spawn(capacity: usize, stage: impl Stage + 'static) -> std::io::Result<Self> {
        Self::watched(capacity, stage, Progress::default())
    }

    /// Starts the thread, and notes in `progress` how it gets on.
    ///
    /// # Errors
    ///
    /// The operating system refuses a thread.
    pub fn watched(
        capacity: usize,
        stage: impl Stage + 'static,
        progress: Progress,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = unbounded();
        let (ending, ended) = bounded(0);
        let shared = Arc::new(PipeState {
            progress,
            ..PipeState::default()
        });
        let name = stage.name();
        let seen = Arc::clone(&shared);
        std::thread::Builder::new()
            .name(format!("baler-{name}"))
            .spawn(move || {
                work(stage, &receiver, &seen);
                // What is left goes back to the medium before the end is known.
                drop(receiver);
                drop(ending);
            })?;
        Ok(Self {
            stage: name,
            capacity: capacity.max(1),
            sender: Some(sender),
            ended,
            shared,
            asked: None,
            deadline: Box::new(|| None),
        })
    }

    /// Sets until when to wait for the stages behind the pipe. `deadline` is asked again and again;
    /// `None` is for as long as it takes.
    #[must_use]
    pub fn until(mut self, deadline: impl Fn() -> Option<Instant> + Send + 'static) -> Self {
        self.deadline = Box::new(deadline);
        self
    }

    /// Passes a message with this number of parcels and records to the thread.
    fn send(&self, message: Message, parcels: usize, records: usize) -> Result<(), AnalysisError> {
        let mut load = self.shared.check()?;
        let sender = self.sender.as_ref().filter(|_| !load.is_over);
        // It never disconnects while the thread takes messages.
        if sender.is_none_or(|sender| sender.send(message).is_err()) {
            return Err(AnalysisError::stage(self.stage, "the pipe has ended"));
        }
        load.messages = load.messages.saturating_add(1);
        load.parcels = load.parcels.saturating_add(parcels);
        load.records = load.records.saturating_add(records);
        self.shared.progress.begins(parcels);
        Ok(())
    }

    /// Asks the stages to do something, unless they were already asked to.
    fn ask(&mut self, asked: Asked) -> Result<(), AnalysisError> {
        if self.asked == Some(asked) {
            return self.shared.check().map(drop);
        }
        self.send(Message::Ask(asked), 0, 0)?;
        self.asked = Some(asked);
        Ok(())
    }

    /// Refuses to wait when the deadline has come.
    fn in_time(&self) -> Result<(), AnalysisError> {
        match (self.deadline)() {
            Some(deadline) if Instant::now() >= deadline => {
                Err(AnalysisError::Stalled { stage: self.stage })
            }
            _ => Ok(()),
        }
    }

    /// Waits until the thread has ended.
    fn join(&mut self) -> Result<(), AnalysisError> {
        self.sender = None;
        while let Err(error) = self.ended.recv_timeout(TICK) {
            if !error.is_timeout() {
                break;
            }
            self.in_time()?;
        }
        self.shared.check().map(drop)
    }
}

impl Stage for Pipe {
    fn name(&self) -> &'static str {
        self.stage
    }

    fn ready(&mut self, by: Instant) -> Result<bool, AnalysisError> {
        let mut load = self.shared.check()?;
        while load.is_full(self.capacity) {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let waited = self.shared.done.wait_timeout(load, left);
            load = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(load);
        self.shared.check().map(|_| true)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        while !self.ready(Instant::now() + TICK)? {
            self.in_time()?;
        }
        self.asked = None;
        let records = parcel.len();
        self.send(Message::Parcel(Held::of(parcel)), 1, records)
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.ask(Asked::Flush)
    }

    fn idle(&mut self) -> Result<bool, AnalysisError> {
        let load = self.shared.check()?;
        let (is_done, holds_back) = (load.messages == 0, load.holds_back);
        drop(load);
        if is_done && self.asked == Some(Asked::Idle) {
            if !holds_back {
                return Ok(false);
            }
            // Their time may have come meanwhile.
            self.asked = None;
        }
        self.ask(Asked::Idle).map(|()| true)
    }

    fn finish(&mut self) -> Result<(), AnalysisError> {
        self.join()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // Whoever wants to know of errors calls `finish`.
        drop(self.join());
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

impl Load {
    fn is_full(&self, capacity: usize) -> bool {
        !self.is_over && (self.parcels >= capacity || self.records >= MAX_RECORDS)
    }
}

impl PipeState {
    fn lock(&self) -> MutexGuard<'_, Load> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the first error of the stages, once.
    fn check(&self) -> Result<MutexGuard<'_, Load>, AnalysisError> {
        let mut load = self.lock();
        load.failure.take().map_or(Ok(load), Err)
    }
}

/// The life of the thread.
fn work(mut stage: impl Stage, messages: &Receiver<Message>, shared: &PipeState) {
    let name = stage.name();
    let mut result = Ok(());
    for message in messages {
        let (parcels, records) = match &message {
            Message::Ask(_) => (0, 0),
            Message::Parcel(held) => (1, held.parcels().map(Parcel::len).sum()),
        };
        result = guarded(name, || obey(&mut stage, message, shared));
        shared.progress.ends(parcels);
        if result.is_err() {
            break;
        }
        let mut load = shared.lock();
        load.messages = load.messages.saturating_sub(1);
        load.parcels = load.parcels.saturating_sub(parcels);
        load.records = load.records.saturating_sub(records);
        drop(load);
        shared.done.notify_all();
    }
    if result.is_ok() {
        result = guarded(name, || stage.finish());
    }
    // A panic while the stages go hides no error.
    drop(catch_unwind(AssertUnwindSafe(|| drop(stage))));
    let mut load = shared.lock();
    load.is_over = true;
    load.failure = result.err();
    let left = messages.try_iter();
    let left = left.filter(|message| matches!(message, Message::Parcel(_)));
    shared.progress.ends(left.count());
    drop(load);
    shared.done.notify_all();
}

fn obey(stage: &mut impl Stage, message: Message, shared: &PipeState) -> Result<(), AnalysisError> {
    match message {
        Message::Ask(Asked::Flush) => stage.flush(),
        Message::Ask(Asked::Idle) => {
            let holds_back = stage.idle()?;
            shared.lock().holds_back = holds_back;
            Ok(())
        }
        Message::Parcel(held) => {
            held.parcels()
                .try_for_each(|parcel| stage.accept(parcel.clone()))?;
            held.release();
            Ok(())
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

/// What a stage said when it panicked.
pub(crate) fn panicked(stage: &'static str, panic: &(dyn std::any::Any + Send)) -> AnalysisError {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).into())
        .or_else(|| {
            panic
                .downcast_ref::<String>()
                .map(|text| text.as_str().into())
        })
        .unwrap_or_else(|| "without a message".into());
    AnalysisError::StagePanicked { stage, message }
}
