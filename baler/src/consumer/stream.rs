//! A consumer as an asynchronous stream, for any runtime.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use baler_analysis::AnalysisError;
use baler_common::record::Records;
use baler_common::transport::panic_text;
use futures_core::Stream;

use super::{Batch, Consumer, StopHandle};
use crate::error::Error;

/// How often the thread checks, at the end of the medium, whether all batches are settled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Batches of typed records as a [`Stream`]; made by [`Consumer::into_stream`].
///
/// A thread of its own reads one batch ahead. The stream ends when the medium has ended and all
/// batches were acknowledged, or when the consumer is stopped. If it is dropped, the consumer ends.
/// A batch that is acknowledged after that is delivered again.
pub struct BatchStream<T> {
    batches: Receiver<Result<Batch<T>, Error>>,
    waiting: Arc<Mutex<Option<Waker>>>,
    stop: StopHandle,
}

impl<T: Records + Send + 'static> BatchStream<T> {
    pub(super) fn start(consumer: Consumer<T>) -> Result<Self, Error> {
        let (sender, batches) = sync_channel(1);
        let waiting = Arc::default();
        let stream = Self {
            batches,
            waiting: Arc::clone(&waiting),
            stop: consumer.stop_handle(),
        };
        thread::Builder::new()
            .name("baler-consumer".into())
            .spawn(move || {
                let ran = catch_unwind(AssertUnwindSafe(|| read(consumer, &sender, &waiting)));
                if let Err(panic) = ran {
                    // If the owner has dropped the stream, it does not need the reason.
                    sender.send(Err(panicked(panic.as_ref()))).ok();
                }
                drop(sender);
                wake(&waiting);
            })
            .map_err(Error::Thread)?;
        Ok(stream)
    }
}

/// Reads until the consumer ends. Batches that are in use at the end of the medium may come again.
fn read<T: Records>(
    mut consumer: Consumer<T>,
    sender: &SyncSender<Result<Batch<T>, Error>>,
    waiting: &Mutex<Option<Waker>>,
) {
    loop {
        match consumer.next() {
            Some(batch) => {
                if sender.send(batch).is_err() {
                    break;
                }
                wake(waiting);
            }
            None if consumer.has_ended() => break,
            None => consumer.pause(POLL_INTERVAL),
        }
    }
}

/// Returns the error for a panic. The end of the stream alone would look like the end of the medium.
fn panicked(panic: &(dyn Any + Send)) -> Error {
    Error::Consume(AnalysisError::StagePanicked {
        stage: "the consumer",
        message: panic_text(panic).into(),
    })
}

fn wake(waiting: &Mutex<Option<Waker>>) {
    let waker = waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl<T> Stream for BatchStream<T> {
    type Item = Result<Batch<T>, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = || match self.batches.try_recv() {
            Ok(batch) => Poll::Ready(Some(batch)),
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
            Err(TryRecvError::Empty) => Poll::Pending,
        };
        let batch = next();
        if batch.is_ready() {
            return batch;
        }
        let waker = Some(context.waker().clone());
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = waker;
        // A batch that arrived before the waker was set has woken nobody, so check again.
        next()
    }
}

impl<T> Drop for BatchStream<T> {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

impl<T> fmt::Debug for BatchStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchStream").finish_non_exhaustive()
    }
}
