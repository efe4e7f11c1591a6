//! A bounded pipe: the stages behind it run on a thread of their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::error::AnalysisError;
use crate::parcel::{Held, Parcel};
use crate::stage::Stage;

/// Moves the stages behind it to a thread of their own; holds at most `capacity` parcels.
///
/// When the pipe is full, [`Stage::accept`] blocks: the bound reaches back to the reader, whose
/// demand it limits.
/// The first error of the stages behind it is returned by the next call.
#[derive(Debug)]
pub struct Pipe {
    stage: &'static str,
    sender: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<AnalysisError>>>,
}

enum Message {
    Flush(Sender<()>),
    Parcel(Held),
}

impl Pipe {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The operating system refuses a thread.
    pub fn spawn(capacity: usize, stage: impl Stage + 'static) -> std::io::Result<Self> {
        let (sender, receiver) = bounded(capacity.max(1));
        let failure = Arc::new(Mutex::new(None));
        let name = stage.name();
        let seen = Arc::clone(&failure);
        let thread = std::thread::Builder::new()
            .name(format!("baler-{name}"))
            .spawn(move || work(stage, &receiver, &seen))?;
        Ok(Self {
            stage: name,
            sender: Some(sender),
            thread: Some(thread),
            failure,
        })
    }

    fn send(&self, message: Message) -> Result<(), AnalysisError> {
        let sent = self.sender.as_ref().map(|sender| sender.send(message));
        match sent {
            Some(Ok(())) => Ok(()),
            // The thread ends early only after an error. The parcel that was not sent, like those
            // still in the pipe, goes back to the medium when its holder is dropped.
            Some(Err(_)) => Err(self.failure()),
            None => Err(AnalysisError::stage(self.stage, "the pipe has ended")),
        }
    }

    fn failure(&self) -> AnalysisError {
        let failure = self
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        failure.unwrap_or_else(|| AnalysisError::stage(self.stage, "the pipe has failed before"))
    }

    fn join(&mut self) -> Result<(), AnalysisError> {
        self.sender = None;
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
        {
            return Err(panicked(self.stage, panic.as_ref()));
        }
        match self
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Stage for Pipe {
    fn name(&self) -> &'static str {
        self.stage
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        self.send(Message::Parcel(Held::of(parcel)))
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        let (done, flushed) = bounded(1);
        self.send(Message::Flush(done))?;
        flushed.recv().map_err(|_| self.failure())
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

fn work(
    mut stage: impl Stage,
    messages: &Receiver<Message>,
    failure: &Mutex<Option<AnalysisError>>,
) {
    let name = stage.name();
    for message in messages {
        let result = match message {
            Message::Flush(done) => guarded(name, || stage.flush()).map(|()| {
                // The one who asked may have given up waiting.
                done.send(()).ok();
            }),
            Message::Parcel(held) => guarded(name, || {
                held.parcels()
                    .try_for_each(|parcel| stage.accept(parcel.clone()))
            })
            .map(|()| held.release()),
        };
        if let Err(error) = result {
            keep_first(failure, error);
            return;
        }
    }
    if let Err(error) = guarded(name, || stage.finish()) {
        keep_first(failure, error);
    }
}

fn keep_first(failure: &Mutex<Option<AnalysisError>>, error: AnalysisError) {
    failure
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert(error);
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
