//! The state that the owner of a reader and its thread share.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baler_common::number::to_u64;
use baler_common::transport::{
    Damaged, Delivery, Failure, Origin, Received, RetryClass, Settled, Token, TransportError,
    Verdict,
};

use super::landmark::Landmark;
use super::ledger::{Acknowledgement, Arrived, Ledger, Nack};
use super::position::{Arrival, Saved};
use crate::client::time_left;
use crate::config::Start;

/// The state that the owner of a reader and its thread share.
#[derive(Debug)]
pub(super) struct ReaderState {
    state: Mutex<State>,
    /// Wakes the thread.
    pub(super) work: tokio::sync::Notify,
    /// Wakes an owner that receives.
    arrived: Condvar,
    pub(super) endpoint: Box<str>,
    pub(super) queue: Box<str>,
    max_chunk_bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) ledger: Ledger,
    /// Delivered and not handed out.
    waiting: VecDeque<Arrived>,
    damaged: VecDeque<Damaged>,
    pub(super) demand: usize,
    /// The last chunk that was handed out may have crashed a consumer. Its acknowledgement is sent at
    /// once: if this consumer crashes too, the chunks that it settled do not come again.
    is_suspect: bool,
    /// The number of acknowledgements that are worth a message to the broker.
    pub(super) ack_every: usize,
    /// The number of unsettled deliveries after which the broker stops delivering.
    pub(super) prefetch: usize,
    /// The number of messages that the queue has for any reader, or of all messages of a stream.
    pub(super) ready: Option<u64>,
    pub(super) connected: bool,
    /// The next error for the owner. A final one stays.
    trouble: Option<Failure>,
    pub(super) close_failure: Option<Failure>,
    pub(super) counts: AmqpReaderCounts,
    /// The thread must end, and may send acknowledgements until then.
    pub(super) stop: Option<Instant>,
}

/// Events at a reader since it was made, over all its connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AmqpReaderCounts {
    /// Connections that were made, with all declarations on them.
    pub connections: u64,
    /// Messages that the broker delivered, repetitions included.
    pub delivered: u64,
    /// Messages that the broker delivered before.
    pub redelivered: u64,
    /// The highest number of earlier deliveries of a message (`x-delivery-count`, of quorum queues).
    pub max_delivery_count: u64,
    /// Times that a stream had removed messages before they were read: by its limits, or because it
    /// was made anew.
    pub removals: u64,
    /// Messages that a stream had removed before they were read, as far as their number is known.
    pub gone: u64,
    /// Messages above the limit, which were rejected.
    pub damaged: u64,
    /// Lost or failed connections, and consumers that the broker cancelled.
    pub failures: u64,
}

/// The next steps of the thread.
#[derive(Debug)]
pub(super) struct Orders {
    /// Must be sent before the acknowledgements.
    pub(super) nacks: Vec<Nack>,
    /// `None` if acknowledgements may wait for more of them.
    pub(super) acknowledgements: Option<Vec<Acknowledgement>>,
    /// How many acknowledgements there were.
    pub(super) owed: usize,
    pub(super) demand: usize,
    /// The owner holds all chunks that the broker delivers, and wants more.
    pub(super) is_starved: bool,
    /// The watermark of a stream must be saved.
    pub(super) is_unsaved: bool,
    pub(super) stop: Option<Instant>,
}

impl ReaderState {
    pub(super) fn new(endpoint: &str, queue: &str, max_chunk_bytes: usize, ledger: Ledger) -> Self {
        Self {
            state: Mutex::new(State {
                ledger,
                demand: usize::MAX,
                ack_every: 1,
                ..State::default()
            }),
            work: tokio::sync::Notify::new(),
            arrived: Condvar::new(),
            endpoint: endpoint.into(),
            queue: queue.into(),
            max_chunk_bytes,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the thread.
    pub(super) fn order(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.work.notify_one();
    }

    /// Waits for a chunk or news, until `by` at most.
    pub(super) fn receive(&self, by: Instant) -> Result<Received, TransportError> {
        let mut state = self.lock();
        loop {
            if let Some(arrived) = state.next() {
                state.is_suspect = arrived.attempts > 0;
                let token = state.ledger.hand_out(&arrived);
                let is_stream = state.ledger.stream.is_some();
                let is_due = is_stream && state.ledger.owed() >= state.ack_every;
                if is_due || state.is_starved() {
                    self.work.notify_one();
                }
                drop(state);
                return Ok(Received::Chunk(Delivery {
                    token,
                    meta: arrived.meta,
                    origin: self.origin(if is_stream { arrived.position } else { token.0 }),
                    redelivered: arrived.redelivered,
                    attempts: arrived.attempts,
                    bytes: arrived.bytes,
                }));
            }
            if let Some(damaged) = state.damaged.pop_front() {
                return Ok(Received::Damaged(damaged));
            }
            if let Some(failure) = &state.trouble {
                let error = failure.at(&self.endpoint);
                if failure.class == RetryClass::Retry {
                    state.trouble = None;
                }
                return Err(error);
            }
            let left = time_left(by);
            if left.is_zero() {
                return Ok(Received::Idle);
            }
            let waited = self.arrived.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn origin(&self, position: u64) -> Origin {
        Origin {
            endpoint: self.endpoint.clone(),
            lane: self.queue.clone(),
            position,
        }
    }

    pub(super) fn settle(&self, token: Token, verdict: Verdict) -> Settled {
        let mut state = self.lock();
        let was_unsaved = state.is_unsaved();
        if state.ledger.settle(token, verdict) == Settled::Stale {
            return Settled::Stale;
        }
        // The first acknowledgement starts the thread's clock. A wake-up for each one would cost a
        // system call.
        let wake = if state.ledger.stream.is_some() {
            state.counts.redelivered += u64::from(verdict == Verdict::Retry);
            !was_unsaved && state.is_unsaved()
        } else {
            let owed = state.ledger.owed();
            let is_due = owed == 1 || owed >= state.ack_every;
            is_due || state.is_suspect || !state.ledger.nacks.is_empty()
        };
        drop(state);
        if wake {
            self.work.notify_one();
        }
        Settled::Done
    }

    /// Takes a message from the client library.
    pub(super) fn arrive(&self, delivery: lapin::message::Delivery) -> Result<(), Failure> {
        let mut arrived = Arrived::from(delivery);
        let mut state = self.lock();
        let (gone, again) = match state.ledger.arrive(&arrived) {
            Arrival::Gap => {
                let message = format!("delivery {} came out of turn", arrived.tag);
                return Err(Failure::retry("read from", message));
            }
            Arrival::Known => return Ok(()),
            Arrival::New { gone, again } => (gone, again),
        };
        arrived.redelivered = again;
        if state.ledger.stream.is_none() {
            // It counts among the chunks here now, and no longer among those at the broker.
            state.ready = state.ready.map(|ready| ready.saturating_sub(1));
        }
        let counts = &mut state.counts;
        counts.delivered += 1;
        counts.redelivered += u64::from(again);
        counts.max_delivery_count = counts.max_delivery_count.max(arrived.attempts.into());
        counts.gone += gone;
        if gone > 0 {
            let to = arrived.position;
            let message = format!("the {gone} chunks before {to} are gone, by the stream's limits");
            state.removal(message);
        }
        if arrived.bytes.len() > self.max_chunk_bytes {
            state.counts.damaged += 1;
            // The queue may have a place for rejected messages. No other reader gets this one.
            state.ledger.reject(&arrived);
            state.damaged.push_back(Damaged {
                token: None,
                origin: self.origin(arrived.position),
                bytes: arrived.bytes,
                reason: format!("above the limit of {} bytes", self.max_chunk_bytes).into(),
                peer: None,
            });
            self.work.notify_one();
        } else {
            state.waiting.push_back(arrived);
        }
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// Reports that the stream was made anew, and reads it from its beginning.
    pub(super) fn begin_anew(&self) {
        let mut state = self.lock();
        if let Some(stream) = &mut state.ledger.stream {
            stream.begin_anew();
        }
        let message = "the stream was made anew: it is read from its beginning; what was not read \
                       before is lost";
        state.removal(message.into());
        drop(state);
        self.arrived.notify_all();
    }

    /// Reports a failure after which the connection goes on.
    pub(super) fn complain(&self, failure: Failure) {
        self.lock().trouble = Some(failure);
        self.arrived.notify_all();
    }

    /// Reports that the connection is lost or could not be made. Unsettled chunks come again.
    pub(super) fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        state.ledger.reset();
        state.waiting.clear();
        state.prefetch = 0;
        state.connected = false;
        state.counts.failures += 1;
        state.trouble = Some(failure);
        drop(state);
        self.arrived.notify_all();
    }
}

impl State {
    /// Reports that the stream has removed chunks before they were read.
    fn removal(&mut self, message: String) {
        self.counts.removals += 1;
        self.trouble = Some(Failure::retry("read from", message));
    }

    /// Where to begin to read a stream, unless the settings decide.
    pub(super) fn start(&self) -> Option<Start> {
        self.ledger.stream.as_ref()?.start()
    }

    /// A message that tells the stream from another one of the same name.
    pub(super) fn landmark(&self) -> Option<Landmark> {
        self.ledger.stream.as_ref()?.landmark()
    }

    /// The position of a stream to save.
    pub(super) fn to_save(&self) -> Option<Saved> {
        self.ledger.stream.as_ref()?.to_save()
    }

    /// The chunk that is handed out next, if the owner wants one.
    fn next(&mut self) -> Option<Arrived> {
        if self.ledger.handed() >= self.demand {
            return None;
        }
        let again = self.ledger.again.pop_front();
        again.or_else(|| self.waiting.pop_front())
    }

    /// Takes the next steps of the thread.
    ///
    /// Nacks and acknowledgements leave the ledger under one lock. Otherwise an acknowledgement of
    /// several deliveries could overtake the nack of one of them, and the broker would drop it.
    pub(super) fn take_orders(&mut self, ack_is_due: bool) -> Orders {
        let is_starved = self.is_starved();
        let owed = self.ledger.owed();
        let is_urgent = is_starved || self.is_suspect || self.stop.is_some();
        let acknowledges = ack_is_due || owed >= self.ack_every || is_urgent;
        // Deliveries without an acknowledgement count against `prefetch`.
        let max_behind = if is_starved {
            0
        } else {
            quarter(self.prefetch)
        };
        Orders {
            nacks: std::mem::take(&mut self.ledger.nacks),
            acknowledgements: acknowledges.then(|| self.ledger.acknowledge(max_behind)),
            owed,
            demand: self.demand,
            is_starved,
            is_unsaved: self.is_unsaved(),
            stop: self.stop,
        }
    }

    /// Whether the owner holds all chunks that the broker delivers before more are settled, and
    /// wants more.
    fn is_starved(&self) -> bool {
        self.prefetch > 0
            && self.waiting.is_empty()
            && self.ledger.taken() >= self.prefetch
            && self.ledger.handed() < self.demand
    }

    fn is_unsaved(&self) -> bool {
        let stream = self.ledger.stream.as_ref();
        stream.is_some_and(|stream| stream.is_unsaved)
    }

    /// How many chunks were written and not settled, as far as the broker says.
    pub(super) fn lag(&self) -> Option<u64> {
        let ready = self.ready?;
        if let Some(stream) = &self.ledger.stream {
            return stream.lag(ready);
        }
        // The broker does not count messages that it has delivered.
        let here = self.waiting.len() + self.ledger.handed();
        Some(ready + to_u64(here))
    }
}

/// A quarter of `prefetch`. The broker gets acknowledgements at least four times per `prefetch`.
pub(super) fn quarter(prefetch: usize) -> usize {
    (prefetch / 4).max(1)
}
