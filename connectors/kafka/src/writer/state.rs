//! The state of a producer: chunks that are not confirmed, confirmations, and why it failed. The
//! owner's thread and the client's callbacks share it.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::transport::{
    Capability, Chunk, Confirmation, Failure, Notify, NotifyCell, Outcome, Window,
};
use bytes::Bytes;
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::ProducerContext;
use rdkafka::statistics::Statistics;

use super::offsets::Offsets;
use crate::client;
use crate::client::token::TokenSource;
use crate::config::{LEAST_MESSAGE_MAX_BYTES, chunk_of};
use crate::error::{Concern, code_of, concern, is_alert, is_refusal};

/// The state of one producer, which the owner's thread and the client's callbacks share.
#[derive(Debug)]
pub(super) struct ProducerState {
    endpoint: Box<str>,
    /// Whether each message is a batch of its own, so that its size alone is judged.
    alone: bool,
    state: Mutex<Progress>,
    changed: Condvar,
    notify: Arc<NotifyCell>,
    throttled: Arc<Throttled>,
    offsets: Arc<Offsets>,
}

/// For how long brokers held the writer back, in milliseconds.
type Throttled = AtomicU64;

#[derive(Default)]
struct Progress {
    /// What was taken and not confirmed.
    window: Window,
    known: Vec<Confirmation>,
    failure: Option<Failure>,
    /// What the client said last of its connections.
    trouble: Option<Box<str>>,
    /// The cluster does not accept who connects.
    refused: Option<Box<str>>,
    /// A batch was above the topic's limit.
    batch_too_large: bool,
    /// A chunk of so many bytes was, alone in its batch.
    chunk_too_large: Option<usize>,
    /// An offer was handed back although the window was open.
    owes_notification: bool,
    /// An offer was handed back since the window was full.
    lacks_room: bool,
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress")
            .field("window", &self.window.len())
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

/// What travels with a message to its delivery report.
#[derive(Debug)]
pub(super) struct SentChunk {
    pub(super) ticket: u64,
    /// Its number among all that were offered.
    number: u64,
    /// The message's payload, which librdkafka reads until then.
    pub(super) bytes: Bytes,
}

/// The client's callbacks, all of them on the thread that polls.
pub(super) struct Callbacks {
    pub(super) producer_state: Arc<ProducerState>,
    pub(super) tokens: TokenSource,
}

impl ClientContext for Callbacks {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.tokens.next(config)
    }

    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(level, facility, message);
    }

    fn stats(&self, statistics: Statistics) {
        let more = client::throttled(&statistics).as_millis();
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        self.producer_state
            .throttled
            .fetch_add(more, Ordering::Relaxed);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        match code_of(&error) {
            // The next delivery report or offer meets it as well; this one says why.
            Some(RDKafkaErrorCode::Fatal) => {
                self.producer_state.fail(Failure::retry("write to", reason))
            }
            Some(code) if is_refusal(code) || is_alert(reason) => {
                self.producer_state.update(|state| {
                    state.refused = Some(reason.into());
                })
            }
            // It says how many, but not why.
            Some(RDKafkaErrorCode::AllBrokersDown) => match self.producer_state.refused() {
                // The next producer reads secrets anew, and is refused for good if they are wrong.
                Some(refused) => self
                    .producer_state
                    .fail(Failure::retry("write to", refused)),
                None => self.producer_state.update(|state| {
                    state.trouble.get_or_insert_with(|| reason.into());
                }),
            },
            _ => self
                .producer_state
                .update(|state| state.trouble = Some(reason.into())),
        }
    }
}

impl ProducerContext for Callbacks {
    type DeliveryOpaque = Box<SentChunk>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Self::DeliveryOpaque) {
        match result {
            Ok(message) => {
                self.producer_state.settle(sent.ticket, Outcome::Confirmed);
                self.producer_state.check_offset(
                    sent.number,
                    message.partition(),
                    message.offset(),
                );
            }
            Err((error, _)) => self.producer_state.failed(sent.ticket, error),
        }
    }
}

impl ProducerState {
    /// A state of a producer that was never opened.
    pub(super) fn unopened(endpoint: &str) -> Arc<Self> {
        let producer_state = Arc::new(Self {
            endpoint: endpoint.into(),
            alone: false,
            state: Mutex::default(),
            changed: Condvar::new(),
            notify: Arc::default(),
            throttled: Arc::default(),
            offsets: Arc::default(),
        });
        producer_state.lock().failure = Some(Failure::retry("write to", "it was not opened yet"));
        producer_state
    }

    /// The state of the next producer, which notifies the same owner and goes on counting.
    pub(super) fn next(&self, alone: bool) -> Arc<Self> {
        Arc::new(Self {
            endpoint: self.endpoint.clone(),
            alone,
            state: Mutex::default(),
            changed: Condvar::new(),
            notify: Arc::clone(&self.notify),
            throttled: Arc::clone(&self.throttled),
            offsets: Arc::clone(&self.offsets),
        })
    }

    /// What travels with the message of a chunk.
    pub(super) fn lend(&self, chunk: &Chunk) -> SentChunk {
        SentChunk {
            ticket: chunk.ticket,
            number: self.offsets.offer(),
            bytes: chunk.bytes.clone(),
        }
    }

    /// Breaks the producer if the partition of a confirmed chunk lost earlier ones, so that the
    /// owner is told.
    fn check_offset(&self, number: u64, partition: i32, offset: i64) {
        if let Some(lost) = self.offsets.confirm(number, partition, offset) {
            let message = format!(
                "partition {partition} went back by {lost} messages to offset {offset}: the topic \
                 was deleted and created again, or a replica without them became its leader; \
                 confirmed chunks that nobody has read are lost"
            );
            self.fail(Failure::retry("write to", message));
        }
    }

    /// For how long brokers held the writer back.
    pub(super) fn throttled(&self) -> Duration {
        Duration::from_millis(self.throttled.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn tell(&self) {
        self.notify.notify();
    }

    pub(super) fn set_notify(&self, notify: Arc<dyn Notify>) {
        self.notify.set(notify);
    }

    pub(super) fn set_awaited(&self, awaited: bool) {
        self.notify.set_awaited(awaited);
    }

    pub(super) fn failure(&self) -> Option<Failure> {
        self.lock().failure.clone()
    }

    /// Why the cluster does not accept who connects, if it said so.
    pub(super) fn refused(&self) -> Option<Box<str>> {
        self.lock().refused.clone()
    }

    /// What the client said last of its connections.
    pub(super) fn trouble(&self) -> Option<Box<str>> {
        self.lock().trouble.clone()
    }

    /// Whether a batch was above the topic's limit.
    pub(super) fn batch_too_large(&self) -> bool {
        self.lock().batch_too_large
    }

    /// The bytes of a chunk that was above the topic's limit, alone in its batch.
    pub(super) fn chunk_too_large(&self) -> Option<usize> {
        self.lock().chunk_too_large
    }

    /// Counts a chunk as taken if the window has room; a single chunk always has.
    pub(super) fn take(&self, chunk: &Chunk, capability: &Capability) -> bool {
        let mut state = self.lock();
        state.lacks_room = !state.window.take(chunk, capability);
        !state.lacks_room
    }

    /// The client did not take it after all. `owes`: the owner is to be told when it may.
    pub(super) fn give_back(&self, ticket: u64, owes: bool) {
        let mut state = self.lock();
        state.window.remove(ticket);
        state.owes_notification |= owes;
    }

    /// Tells the owner what it was promised.
    pub(super) fn pay(&self) {
        let owes = std::mem::take(&mut self.lock().owes_notification);
        if owes {
            self.tell();
        }
    }

    /// Appends what is known, and says whether the producer is broken.
    pub(super) fn confirmations(&self, out: &mut Vec<Confirmation>) -> Option<Failure> {
        let mut state = self.lock();
        out.append(&mut state.known);
        state.failure.clone()
    }

    fn settle(&self, ticket: u64, outcome: Outcome) {
        let mut state = self.lock();
        // After a failure everything is in doubt: a later chunk must not be confirmed before an
        // earlier one of its lane.
        if state.failure.is_some() || !state.window.remove(ticket) {
            return;
        }
        let refused = !matches!(outcome, Outcome::Confirmed);
        state.known.push(Confirmation { ticket, outcome });
        let tells = refused || state.lacks_room || self.notify.is_awaited();
        drop(state);
        self.changed.notify_all();
        if tells {
            self.tell();
        }
    }

    /// A message was not delivered.
    fn failed(&self, ticket: u64, error: &KafkaError) {
        let code = code_of(error).unwrap_or(RDKafkaErrorCode::Unknown);
        match concern(code) {
            Concern::Size if !self.alone => {
                self.update(|state| state.batch_too_large = true);
                let message = "a batch of chunks is above the topic's max.message.bytes";
                self.fail(Failure::retry("write to", message));
            }
            Concern::Size if self.can_be_split(ticket) => {
                let message = "a chunk is above the topic's max.message.bytes";
                self.fail(Failure::retry("write to", message));
            }
            Concern::Size | Concern::Chunk => {
                let failure = Failure::last("write to", error.to_string());
                self.settle(ticket, Outcome::Refused(failure.at(&self.endpoint)));
            }
            Concern::Everything => self.fail(Failure::last("write to", error.to_string())),
            Concern::Now => {
                let trouble = self.trouble().unwrap_or_default();
                let colon = if trouble.is_empty() { "" } else { "; last: " };
                let message = format!("{error}{colon}{trouble}");
                self.fail(Failure::retry("write to", message));
            }
        }
    }

    /// Notes that a chunk is above the topic's limit, if less than it could be sent.
    fn can_be_split(&self, ticket: u64) -> bool {
        let mut state = self.lock();
        let bytes = state.window.bytes_of(ticket);
        let least = chunk_of(LEAST_MESSAGE_MAX_BYTES).get();
        state.chunk_too_large = bytes.filter(|bytes| *bytes > least);
        state.chunk_too_large.is_some()
    }

    /// The producer is of no use any more. The first reason stays.
    pub(super) fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        if state.failure.is_some() {
            return;
        }
        state.failure = Some(failure);
        drop(state);
        self.changed.notify_all();
        self.tell();
    }

    /// Waits for a change, shortly.
    pub(super) fn wait(&self, time: Duration) {
        let waited = self.changed.wait_timeout(self.lock(), time);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until everything is confirmed, the producer is broken, or `by`; yields why not
    /// everything is.
    pub(super) fn drain(&self, by: Instant) -> Option<Failure> {
        let mut state = self.lock();
        loop {
            if state.window.is_empty() {
                return None;
            }
            if state.failure.is_some() {
                return state.failure.clone();
            }
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let message = "not everything was confirmed in time";
                // What is reported from now on comes too late for the owner's account.
                state.failure = Some(Failure::retry("close", message));
                return state.failure.clone();
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tickets that are not confirmed, in order.
    pub(super) fn unconfirmed(&self) -> Vec<u64> {
        self.lock().window.tickets().collect()
    }
}
