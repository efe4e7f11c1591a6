//! The chunks that were published on a connection and are not answered.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use baler_common::transport::Chunk;
use lapin::Confirmation;

use super::answer::Answer;

/// A publish and its confirmation.
pub(super) type Confirming = Pin<Box<dyn Future<Output = lapin::Result<Confirmation>> + Send>>;

/// Publishes a chunk when what it makes is polled for the first time.
pub(super) type Publish = Box<dyn Fn(Chunk) -> Confirming + Send>;

/// The chunks that were published on a connection and are not answered, oldest first.
///
/// Whoever has it is the only one on its channel: two could swap delivery tags.
pub(super) struct Line {
    publish: Publish,
    /// Woken when something is answered.
    waker: Waker,
    slots: VecDeque<Slot>,
}

/// A published chunk that is not answered.
struct Slot {
    since: Instant,
    confirming: Confirming,
    /// Its answer, where it was there at once; polled no more then.
    answered: Option<lapin::Result<Confirmation>>,
}

impl Line {
    pub(super) fn new(publish: Publish, waker: Waker) -> Self {
        Self {
            publish,
            waker,
            slots: VecDeque::new(),
        }
    }

    /// Puts the frames of a chunk in order behind those before; never blocks.
    ///
    /// Polled once, and again when it is the oldest.
    /// Awaiting each would cost a round trip through the socket's thread each, five times the CPU.
    pub(super) fn publish(&mut self, chunk: Chunk) {
        let mut confirming = (self.publish)(chunk);
        let mut context = Context::from_waker(&self.waker);
        // Answered at once is only what a dead channel refuses.
        let answered = match confirming.as_mut().poll(&mut context) {
            Poll::Pending => None,
            Poll::Ready(result) => Some(result),
        };
        self.slots.push_back(Slot {
            since: Instant::now(),
            confirming,
            answered,
        });
    }

    /// The answer to the oldest chunk, if it is there; otherwise the waker is woken when it is.
    pub(super) fn next_answer(&mut self) -> Option<lapin::Result<Answer>> {
        let slot = self.slots.front_mut()?;
        let result = match slot.answered.take() {
            Some(result) => result,
            None => {
                let mut context = Context::from_waker(&self.waker);
                match slot.confirming.as_mut().poll(&mut context) {
                    Poll::Ready(result) => result,
                    Poll::Pending => return None,
                }
            }
        };
        self.slots.pop_front();
        Some(result.map(Answer::from))
    }

    /// When the oldest chunk was published.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.slots.front().map(|slot| slot.since)
    }

    /// Whether everything is answered.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}
