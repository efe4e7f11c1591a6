//! What the owner of a reader and its thread share.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baler_common::transport::{
    Damaged, Delivery, Origin, Received, RetryClass, Settled, Token, TransportError, Verdict,
};
use bytes::Bytes;

use super::counts::AmqpReaderCounts;
use super::ledger::{Acknowledgement, Ledger};
use crate::error::Failure;
use crate::headers;

/// What the owner of a reader and its thread share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Wakes the thread: the demand changed, something was settled, or it is to stop.
    pub(super) work: tokio::sync::Notify,
    /// Wakes an owner that receives.
    arrived: Condvar,
    endpoint: Box<str>,
    queue: Box<str>,
    max_chunk_bytes: usize,
}

#[derive(Debug)]
struct State {
    ledger: Ledger,
    /// Delivered and not handed out.
    waiting: VecDeque<(u64, lapin::message::Delivery)>,
    damaged: VecDeque<Damaged>,
    /// What the broker is to be told alone.
    alone: Vec<Alone>,
    demand: usize,
    /// How many acknowledgements are worth a message to the broker.
    ack_every: usize,
    /// What the owner is to be told; a final one again and again.
    trouble: Option<Failure>,
    close_failure: Option<Failure>,
    counts: AmqpReaderCounts,
    stop: Option<Instant>,
}

/// A delivery that is not acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alone {
    pub(super) tag: u64,
    pub(super) requeue: bool,
}

/// What the thread is to do.
#[derive(Debug)]
pub(super) struct Orders {
    pub(super) alone: Vec<Alone>,
    pub(super) demand: usize,
    pub(super) owed: usize,
    pub(super) stop: Option<Instant>,
}

impl Shared {
    pub(super) fn new(endpoint: &str, queue: &str, max_chunk_bytes: usize) -> Self {
        Self {
            state: Mutex::new(State {
                ledger: Ledger::default(),
                waiting: VecDeque::new(),
                damaged: VecDeque::new(),
                alone: Vec::new(),
                demand: usize::MAX,
                ack_every: 1,
                trouble: None,
                close_failure: None,
                counts: AmqpReaderCounts::default(),
                stop: None,
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

    pub(super) fn set_demand(&self, chunks: usize) {
        self.lock().demand = chunks;
        self.work.notify_one();
    }

    /// Waits for something to happen, until `by` at most.
    pub(super) fn receive(&self, by: Instant) -> Result<Received, TransportError> {
        let mut state = self.lock();
        loop {
            if state.ledger.handed() < state.demand
                && let Some((tag, delivery)) = state.waiting.pop_front()
            {
                let token = state.ledger.hand_out(tag);
                return Ok(Received::Chunk(self.delivery(token, delivery)));
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

    fn delivery(&self, token: Token, delivery: lapin::message::Delivery) -> Delivery {
        Delivery {
            token,
            meta: headers::meta(&delivery.properties),
            origin: self.origin(token.0),
            redelivered: delivery.redelivered,
            bytes: Bytes::from(delivery.data),
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
        let (settled, alone) = state.ledger.settle(token, verdict);
        if let Some(tag) = alone {
            let requeue = verdict == Verdict::Retry;
            state.alone.push(Alone { tag, requeue });
        }
        // The first one starts the thread's clock; a wake-up for each would cost a system call.
        let owed = state.ledger.owed();
        let wake = alone.is_some() || owed == 1 || owed >= state.ack_every;
        drop(state);
        if wake && settled == Settled::Done {
            self.work.notify_one();
        }
        settled
    }

    /// The connection is made, with everything on it.
    pub(super) fn connected(&self) {
        self.lock().counts.connections += 1;
    }

    /// So many acknowledgements are worth a message to the broker.
    pub(super) fn set_ack_every(&self, ack_every: usize) {
        self.lock().ack_every = ack_every;
    }

    /// A message is there.
    pub(super) fn arrive(&self, delivery: lapin::message::Delivery) -> Result<(), Failure> {
        let tag = delivery.delivery_tag;
        let mut state = self.lock();
        if !state.ledger.arrive(tag) {
            let message = format!("delivery {tag} came out of turn");
            return Err(Failure::retry("read from", message));
        }
        let count = headers::delivery_count(&delivery.properties).unwrap_or_default();
        let counts = &mut state.counts;
        counts.delivered += 1;
        counts.redelivered += u64::from(delivery.redelivered);
        counts.max_delivery_count = counts.max_delivery_count.max(count);
        if delivery.data.len() > self.max_chunk_bytes {
            counts.damaged += 1;
            let reason = format!("above the limit of {} bytes", self.max_chunk_bytes);
            // Rejected, it goes where dead letters go, and no other reader gets it.
            state.ledger.put_aside(tag);
            state.alone.push(Alone {
                tag,
                requeue: false,
            });
            state.damaged.push_back(Damaged {
                bytes: Bytes::from(delivery.data),
                origin: self.origin(tag),
                reason: reason.into(),
            });
            self.work.notify_one();
        } else {
            state.waiting.push_back((tag, delivery));
        }
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// What the thread is to do.
    pub(super) fn take(&self) -> Orders {
        let mut state = self.lock();
        Orders {
            alone: std::mem::take(&mut state.alone),
            demand: state.demand,
            owed: state.ledger.owed(),
            stop: state.stop,
        }
    }

    /// The acknowledgements to be sent now; [`Ledger::acknowledge`].
    pub(super) fn acknowledge(&self, behind: usize) -> Vec<Acknowledgement> {
        self.lock().ledger.acknowledge(behind)
    }

    /// The connection is gone, or could not be made. What was not settled comes again.
    pub(super) fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        state.ledger.reset();
        state.waiting.clear();
        state.alone.clear();
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
