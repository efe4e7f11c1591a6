//! What the owner of a reader and its thread share.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baler_common::transport::{
    Damaged, Delivery, Failure, LaneLag, Origin, ReaderStats, Received, RetryClass, Settled, Token,
    TransportError, Verdict,
};

use super::AmqpReaderCounts;
use super::ledger::{Acknowledgement, Arrival, Arrived, Ledger, Nack, SettleAction};
use super::position::StreamPosition;
use crate::config::Start;

/// What the owner of a reader and its thread share.
#[derive(Debug)]
pub(super) struct ReaderState {
    state: Mutex<State>,
    /// Wakes the thread: the demand changed, something was settled, or it is to stop.
    pub(super) work: tokio::sync::Notify,
    /// Wakes an owner that receives.
    arrived: Condvar,
    endpoint: Box<str>,
    queue: Box<str>,
    max_chunk_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    ledger: Ledger,
    /// Delivered and not handed out.
    waiting: VecDeque<Arrived>,
    /// To be handed out once more, before those.
    again: VecDeque<Arrived>,
    damaged: VecDeque<Damaged>,
    /// To be sent to the broker.
    nacks: Vec<Nack>,
    demand: usize,
    /// The chunk that was handed out last may have crashed a consumer. What is settled is acknowledged
    /// at once: it must not come again when this consumer crashes, too.
    is_suspect: bool,
    /// How many acknowledgements are worth a message to the broker.
    ack_every: usize,
    /// How many deliveries the broker lets be unsettled.
    prefetch: usize,
    /// How many messages the queue holds for whom it may concern, or the stream altogether.
    ready: Option<u64>,
    connected: bool,
    /// What the owner is to be told; a final one again and again.
    trouble: Option<Failure>,
    close_failure: Option<Failure>,
    counts: AmqpReaderCounts,
    stop: Option<Instant>,
}

/// What the thread is to do.
#[derive(Debug)]
pub(super) struct Orders {
    pub(super) nacks: Vec<Nack>,
    pub(super) demand: usize,
    pub(super) owed: usize,
    /// What is owed is to be acknowledged at once.
    pub(super) is_suspect: bool,
    /// The owner holds all that the broker sends, and wants more.
    pub(super) starved: bool,
    /// The watermark of a stream is to be saved.
    pub(super) unsaved: bool,
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counts(&self) -> AmqpReaderCounts {
        self.lock().counts
    }

    /// What the reader knows of its medium.
    pub(super) fn stats(&self) -> ReaderStats {
        let state = self.lock();
        let mut stats = ReaderStats::default();
        stats.reconnects = state.counts.connections.saturating_sub(1);
        stats.connected = Some(state.connected);
        stats.lag.extend(state.lag().map(|chunks| LaneLag {
            lane: self.queue.clone(),
            chunks,
        }));
        stats
    }

    /// What is between this reader and the end of its queue. The broker does not say that a queue
    /// is empty, but sends what it has at once to a consumer that has subscribed.
    pub(super) fn waits_for(&self) -> Option<&'static str> {
        let state = self.lock();
        match (state.connected, state.prefetch) {
            (false, _) => Some("broker"),
            (true, 0) => Some("queue"),
            (true, _) => None,
        }
    }

    pub(super) fn set_demand(&self, chunks: usize) {
        self.lock().demand = chunks;
        self.work.notify_one();
    }

    /// Waits for something to happen, until `by` at most.
    pub(super) fn receive(&self, by: Instant) -> Result<Received, TransportError> {
        let mut state = self.lock();
        loop {
            if state.ledger.handed() < state.demand
                && let Some(arrived) = state.next()
            {
                state.is_suspect = arrived.attempts > 0;
                let token = state.ledger.hand_out(&arrived);
                let is_stream = state.ledger.stream.is_some();
                let wake =
                    state.is_starved() || (is_stream && state.ledger.owed() >= state.ack_every);
                drop(state);
                let origin = self.origin(if is_stream { arrived.position } else { token.0 });
                if wake {
                    self.work.notify_one();
                }
                return Ok(Received::Chunk(Delivery {
                    token,
                    meta: arrived.meta,
                    origin,
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
            let left = by.saturating_duration_since(Instant::now());
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
        let (settled, consequence) = state.ledger.settle(token, verdict);
        // The first one starts the thread's clock; a wake-up for each would cost a system call.
        let mut wake = match state.ledger.stream {
            None => {
                let owed = state.ledger.owed();
                state.is_suspect || owed == 1 || owed >= state.ack_every
            }
            Some(_) => !was_unsaved && state.is_unsaved(),
        };
        match consequence {
            SettleAction::None => {}
            SettleAction::Nack(nack) => {
                state.nacks.push(nack);
                wake = true;
            }
            SettleAction::Again(arrived) => {
                state.counts.redelivered += 1;
                state.again.push_back(arrived);
            }
        }
        drop(state);
        if wake && settled == Settled::Done {
            self.work.notify_one();
        }
        settled
    }

    /// The connection is made, with everything on it.
    pub(super) fn connected(&self) {
        let mut state = self.lock();
        state.counts.connections += 1;
        state.connected = true;
    }

    /// The broker lets so many deliveries be unsettled, and so many acknowledgements are worth a
    /// message to it.
    pub(super) fn set_prefetch(&self, prefetch: usize, ack_every: usize) {
        let mut state = self.lock();
        state.prefetch = prefetch;
        state.ack_every = ack_every;
    }

    /// The broker says how many messages there are.
    pub(super) fn set_ready(&self, messages: u64) {
        self.lock().ready = Some(messages);
    }

    /// A message is there.
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
        let counts = &mut state.counts;
        counts.delivered += 1;
        counts.redelivered += u64::from(again);
        counts.max_delivery_count = counts.max_delivery_count.max(arrived.attempts.into());
        counts.gone = counts.gone.saturating_add(gone);
        if gone > 0 {
            let to = arrived.position;
            let message = format!("the {gone} chunks before {to} are gone, by the stream's limits");
            state.trouble = Some(Failure::retry("read from", message));
        }
        if arrived.bytes.len() > self.max_chunk_bytes {
            state.counts.damaged += 1;
            let reason = format!("above the limit of {} bytes", self.max_chunk_bytes);
            // Rejected, it goes where dead letters go, and no other reader gets it.
            if let SettleAction::Nack(nack) = state.ledger.put_aside(&arrived) {
                state.nacks.push(nack);
            }
            state.damaged.push_back(Damaged {
                bytes: arrived.bytes,
                origin: self.origin(arrived.position),
                reason: reason.into(),
            });
            self.work.notify_one();
        } else {
            state.waiting.push_back(arrived);
        }
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// What the thread is to do.
    pub(super) fn take(&self) -> Orders {
        let mut state = self.lock();
        Orders {
            nacks: std::mem::take(&mut state.nacks),
            demand: state.demand,
            owed: state.ledger.owed(),
            is_suspect: state.is_suspect,
            starved: state.is_starved(),
            unsaved: state.is_unsaved(),
            stop: state.stop,
        }
    }

    /// The acknowledgements to be sent now; [`Ledger::acknowledge`].
    pub(super) fn acknowledge(&self, behind: usize) -> Vec<Acknowledgement> {
        self.lock().ledger.acknowledge(behind)
    }

    /// Where a stream is to be read from: everything before is settled.
    pub(super) fn position(&self) -> Option<u64> {
        self.lock().ledger.stream.as_ref()?.next()
    }

    /// The position before this one need not be saved again.
    pub(super) fn saved(&self, position: u64) {
        if let Some(stream) = &mut self.lock().ledger.stream {
            stream.is_unsaved = stream.next() != Some(position);
        }
    }

    /// Goes on where an earlier reader was.
    pub(super) fn go_on_from(&self, position: u64) {
        let position = StreamPosition::from(Start::Offset(position));
        self.lock().ledger = Ledger::of_stream(position);
    }

    /// Something is wrong, and the connection works on.
    pub(super) fn complain(&self, failure: Failure) {
        self.lock().trouble = Some(failure);
        self.arrived.notify_all();
    }

    /// The connection is gone, or could not be made. What was not settled comes again.
    pub(super) fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        state.ledger.reset();
        state.waiting.clear();
        state.again.clear();
        state.nacks.clear();
        state.prefetch = 0;
        state.connected = false;
        state.counts.failures += 1;
        state.trouble = Some(failure);
        drop(state);
        self.arrived.notify_all();
    }

    /// The thread is to end, and may tell the broker what is settled until `by`.
    pub(super) fn stop(&self, by: Instant) {
        self.lock().stop = Some(by);
        self.work.notify_one();
    }

    pub(super) fn stopped(&self) -> Option<Instant> {
        self.lock().stop
    }

    pub(super) fn set_close_failure(&self, failure: Failure) {
        self.lock().close_failure = Some(failure);
    }

    /// How many deliveries are handed out and not settled, and what went wrong in closing.
    pub(super) fn end(&self) -> (usize, Option<TransportError>) {
        let state = self.lock();
        let failure = state.close_failure.as_ref();
        (
            state.ledger.handed(),
            failure.map(|failure| failure.at(&self.endpoint)),
        )
    }
}

impl State {
    /// What is handed out next.
    fn next(&mut self) -> Option<Arrived> {
        self.again.pop_front().or_else(|| self.waiting.pop_front())
    }

    /// Whether the owner holds all that the broker sends before more is settled, and wants more.
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

    /// How many chunks were written and not settled, as far as is known.
    fn lag(&self) -> Option<u64> {
        let ready = self.ready?;
        if let Some(stream) = &self.ledger.stream {
            return stream.lag(ready);
        }
        // The broker does not count what it has sent to somebody.
        let here = self.waiting.len() + self.ledger.handed();
        Some(ready.saturating_add(u64::try_from(here).unwrap_or(u64::MAX)))
    }
}
