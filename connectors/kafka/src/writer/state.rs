//! The state of a producer: chunks that are not confirmed, confirmations, and why it failed. The
//! owner's thread and the client's callbacks share it.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::transport::{
    Capability, Chunk, DeliveryReport, Failure, Notify as _, NotifyCell, Outcome, Window,
};
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::ProducerContext;
use rdkafka::statistics::Statistics;

use crate::client::{self, TokenSource};
use crate::config::{LEAST_MESSAGE_MAX_BYTES, chunk_of};
use crate::error::{ErrorClass, error_class, is_alert, is_refusal};

/// The state of one producer.
#[derive(Debug)]
pub(super) struct WriterState {
    /// Whether each message is a batch of its own, so that its size alone is judged.
    pub(super) alone: bool,
    pub(super) persistent: Arc<PersistentState>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The state that outlives a producer.
#[derive(Debug, Default)]
pub(super) struct PersistentState {
    endpoint: Box<str>,
    pub(super) notify: NotifyCell,
    /// For how long brokers held the writer back, in milliseconds.
    throttled_ms: AtomicU64,
    offsets: Mutex<Offsets>,
}

#[derive(Debug, Default)]
struct State {
    /// What was taken and not confirmed.
    window: Window,
    known: Vec<DeliveryReport>,
    failure: Option<Failure>,
    /// What the client said last of its connections.
    trouble: Option<Box<str>>,
    /// Why the cluster does not accept this client.
    refused: Option<Box<str>>,
    /// The bytes of a chunk that was refused for its size, or for that of its batch.
    too_large: Option<usize>,
    /// An offer was handed back since there was no room.
    lacks_room: bool,
}

/// What travels with a message to its delivery report.
#[derive(Debug)]
pub(super) struct SentChunk {
    ticket: u64,
    /// Its number among all that were offered.
    number: u64,
}

/// The client's callbacks, all of them on the thread that polls.
pub(super) struct Callbacks {
    pub(super) shared: Arc<WriterState>,
    pub(super) tokens: TokenSource,
}

impl ClientContext for Callbacks {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.tokens.next()
    }

    fn stats(&self, statistics: Statistics) {
        let more = client::throttled(&statistics).as_millis();
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        let throttled = &self.shared.persistent.throttled_ms;
        throttled.fetch_add(more, Ordering::Relaxed);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let shared = &self.shared;
        match error.rdkafka_error_code() {
            // The next delivery report or offer meets it as well; this one says why.
            Some(RDKafkaErrorCode::Fatal) => shared.fail(Failure::retry("write to", reason)),
            Some(code) if is_refusal(code) || is_alert(reason) => {
                shared.update(|state| state.refused = Some(reason.into()));
            }
            // It says how many, but not why.
            Some(RDKafkaErrorCode::AllBrokersDown) => match shared.refused() {
                // The next producer reads secrets anew, and is refused for good if they are wrong.
                Some(refused) => shared.fail(Failure::retry("write to", refused)),
                None => shared.update(|state| {
                    state.trouble.get_or_insert_with(|| reason.into());
                }),
            },
            _ => shared.update(|state| state.trouble = Some(reason.into())),
        }
    }
}

impl ProducerContext for Callbacks {
    type DeliveryOpaque = Box<SentChunk>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Self::DeliveryOpaque) {
        match result {
            Ok(message) => {
                self.shared.settle(sent.ticket, Outcome::Confirmed);
                self.shared
                    .check_offset(sent.number, message.partition(), message.offset());
            }
            Err((error, _)) => self.shared.failed(sent.ticket, error),
        }
    }
}

impl WriterState {
    /// A state of a producer that was never opened.
    pub(super) fn unopened(endpoint: &str) -> Arc<Self> {
        let persistent = PersistentState {
            endpoint: endpoint.into(),
            ..PersistentState::default()
        };
        let shared = Self::with(false, Arc::new(persistent));
        shared.update(|state| {
            state.failure = Some(Failure::retry("write to", "it was not opened yet"));
        });
        shared
    }

    /// The state of the next producer, which notifies the same owner and goes on counting.
    pub(super) fn next(&self, alone: bool) -> Arc<Self> {
        Self::with(alone, Arc::clone(&self.persistent))
    }

    fn with(alone: bool, persistent: Arc<PersistentState>) -> Arc<Self> {
        Arc::new(Self {
            alone,
            persistent,
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn offsets(&self) -> MutexGuard<'_, Offsets> {
        let offsets = self.persistent.offsets.lock();
        offsets.unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long brokers held the writer back.
    pub(super) fn throttled(&self) -> Duration {
        Duration::from_millis(self.persistent.throttled_ms.load(Ordering::Relaxed))
    }

    pub(super) fn failure(&self) -> Option<Failure> {
        self.lock().failure.clone()
    }

    /// Why the cluster does not accept this client, if it said so.
    pub(super) fn refused(&self) -> Option<Box<str>> {
        self.lock().refused.clone()
    }

    /// What the client said last of its connections.
    pub(super) fn trouble(&self) -> Option<Box<str>> {
        self.lock().trouble.clone()
    }

    /// The bytes of a chunk that was refused for its size, or for that of its batch.
    pub(super) fn too_large(&self) -> Option<usize> {
        self.lock().too_large
    }

    /// Counts a chunk as taken if the window has room; a single chunk always has.
    pub(super) fn take(&self, chunk: &Chunk, capability: &Capability) -> bool {
        let mut state = self.lock();
        state.lacks_room = !state.window.take(chunk, capability);
        !state.lacks_room
    }

    /// What travels with the next message.
    pub(super) fn number(&self, ticket: u64) -> Box<SentChunk> {
        let number = self.offsets().offer();
        Box::new(SentChunk { ticket, number })
    }

    /// The client did not take a chunk after all.
    pub(super) fn give_back(&self, ticket: u64) {
        let mut state = self.lock();
        state.window.remove(ticket);
        state.lacks_room = true;
    }

    /// Tells an owner whose offer the client handed back that it may try again.
    pub(super) fn tell_of_room(&self) {
        if self.lock().lacks_room {
            self.persistent.notify.notify();
        }
    }

    /// Appends what is known, and says whether the producer is broken.
    pub(super) fn delivery_reports(&self, out: &mut Vec<DeliveryReport>) -> Option<Failure> {
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
        let is_refused = !matches!(outcome, Outcome::Confirmed);
        state.known.push(DeliveryReport { ticket, outcome });
        let tells = is_refused || state.lacks_room || self.persistent.notify.is_awaited();
        drop(state);
        self.changed.notify_all();
        if tells {
            self.persistent.notify.notify();
        }
    }

    /// Breaks the producer if the partition of a confirmed chunk lost earlier ones, so that the
    /// owner learns of it.
    fn check_offset(&self, number: u64, partition: i32, offset: i64) {
        let lost = self.offsets().confirm(number, partition, offset);
        if let Some(lost) = lost {
            let message = format!(
                "partition {partition} went back by {lost} messages to offset {offset}: the topic \
                 was deleted and created again, or a replica without them became its leader; \
                 confirmed chunks that nobody has read are lost"
            );
            self.fail(Failure::retry("write to", message));
        }
    }

    /// A message was not delivered.
    fn failed(&self, ticket: u64, error: &KafkaError) {
        let code = error
            .rdkafka_error_code()
            .unwrap_or(RDKafkaErrorCode::Unknown);
        match error_class(code) {
            ErrorClass::TooLarge if self.can_be_smaller(ticket) => {
                let what = if self.alone {
                    "chunk"
                } else {
                    "batch of chunks"
                };
                let message = format!("a {what} is above the topic's max.message.bytes");
                self.fail(Failure::retry("write to", message));
            }
            ErrorClass::TooLarge | ErrorClass::InvalidMessage => {
                let failure = Failure::last("write to", error.to_string());
                let refused = failure.at(&self.persistent.endpoint);
                self.settle(ticket, Outcome::Refused(refused));
            }
            ErrorClass::Permanent => self.fail(Failure::last("write to", error.to_string())),
            ErrorClass::Transient => {
                let last = self.trouble().map(|trouble| format!("; last: {trouble}"));
                let message = format!("{error}{}", last.unwrap_or_default());
                self.fail(Failure::retry("write to", message));
            }
        }
    }

    /// Notes a chunk that was too large, if it can be sent without others or be split.
    fn can_be_smaller(&self, ticket: u64) -> bool {
        let mut state = self.lock();
        let least = chunk_of(LEAST_MESSAGE_MAX_BYTES).get();
        let bytes = state.window.bytes_of(ticket);
        let too_large = bytes.filter(|bytes| !self.alone || *bytes > least);
        state.too_large = too_large.or(state.too_large);
        too_large.is_some()
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
        self.persistent.notify.notify();
    }

    /// Waits for a change, shortly.
    pub(super) fn wait(&self, time: Duration) {
        let waited = self.changed.wait_timeout(self.lock(), time);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until everything is confirmed, the producer is broken, or `by`; yields why not
    /// everything is.
    pub(super) fn drain(&self, by: Instant) -> Option<Failure> {
        let left = by.saturating_duration_since(Instant::now());
        let waits = |state: &mut State| !state.window.is_empty() && state.failure.is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), left, waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.window.is_empty() {
            return None;
        }
        // What is reported from now on comes too late for the owner's account.
        let late = || Failure::retry("close", "not everything was confirmed in time");
        Some(state.failure.get_or_insert_with(late).clone())
    }

    /// Tickets that are not confirmed, in order.
    pub(super) fn unconfirmed(&self) -> Vec<u64> {
        self.lock().window.tickets().collect()
    }
}

/// The offsets of confirmed chunks.
///
/// A chunk that is offered after another one was confirmed gets a higher offset in the same
/// partition. A lower one means that the partition lost what it had: somebody deleted the topic and
/// created it again, or a replica without the confirmed chunks became the leader.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    /// How many chunks were offered.
    offered: u64,
    /// The last confirmed offset of each partition, and how many chunks had been offered then.
    marks: HashMap<i32, (i64, u64)>,
}

impl Offsets {
    /// The number of the next chunk, before it is offered.
    pub(super) fn offer(&mut self) -> u64 {
        self.offered += 1;
        self.offered
    }

    /// A chunk was confirmed; yields how many messages its partition lost, if it did.
    pub(super) fn confirm(&mut self, number: u64, partition: i32, offset: i64) -> Option<u64> {
        // With acks=0 brokers do not tell offsets.
        if offset < 0 {
            return None;
        }
        let now = (offset, self.offered);
        let mark = self.marks.entry(partition).or_insert(now);
        // A chunk that was under way at the same time may have any offset.
        if number <= mark.1 {
            return None;
        }
        let before = std::mem::replace(mark, now).0;
        let lost = before.checked_sub(offset)?.checked_add(1)?;
        u64::try_from(lost).ok().filter(|lost| *lost > 0)
    }
}
