//! The state of a producer: unconfirmed chunks, delivery reports, and its failure. The owner's thread
//! and the client's callbacks share it.

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

use super::topic::TopicWatch;
use crate::client::{self, TokenSource};
use crate::config::{KafkaConfig, LEAST_MESSAGE_MAX_BYTES, chunk_of};
use crate::error::{ErrorClass, error_class, is_alert, is_refusal};

/// The state of one producer.
#[derive(Debug)]
pub(super) struct WriterState {
    /// Whether each message is a batch of its own, so that the broker judges its size alone.
    pub(super) alone: bool,
    pub(super) persistent: Arc<PersistentState>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The state that outlives a producer.
#[derive(Debug)]
pub(super) struct PersistentState {
    pub(super) topic: Arc<TopicWatch>,
    pub(super) notify: NotifyCell,
    /// How long brokers throttled the writer, in milliseconds.
    throttled_ms: AtomicU64,
    offsets: Mutex<Offsets>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// The unconfirmed chunks.
    pub(super) window: Window,
    /// The delivery reports that the owner has not fetched.
    delivery_reports: Vec<DeliveryReport>,
    pub(super) failure: Option<Failure>,
    /// The client's last error of its connections.
    pub(super) trouble: Option<Box<str>>,
    /// The reason why the cluster does not accept this client.
    pub(super) refused: Option<Box<str>>,
    /// The size in bytes of a chunk that was refused because it, or its batch, was too large.
    pub(super) too_large: Option<usize>,
    /// Whether the last offer was refused because there was no room.
    lacks_room: bool,
}

/// The identity of a chunk, which the client returns with its delivery report.
#[derive(Debug)]
pub(super) struct SentChunk {
    ticket: u64,
    /// Its number among all offered chunks.
    number: u64,
}

/// The client's callbacks. All of them run on the thread that polls.
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
        self.shared.persistent.topic.take_statistics(&statistics);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let shared = &self.shared;
        match error.rdkafka_error_code() {
            // The next delivery report or offer fails too, but without the reason.
            Some(RDKafkaErrorCode::Fatal) => shared.fail(Failure::retry("write to", reason)),
            Some(code) if is_refusal(code) || is_alert(reason) => {
                shared.update(|state| state.refused = Some(reason.into()));
            }
            // Its text has the number of brokers, but not the reason.
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                let refused = shared.lock().refused.clone();
                match refused {
                    // The next producer reads secrets again. It fails for good if they are wrong.
                    Some(refused) => shared.fail(Failure::retry("write to", refused)),
                    None => shared.update(|state| {
                        state.trouble.get_or_insert_with(|| reason.into());
                    }),
                }
            }
            _ => shared.update(|state| state.trouble = Some(reason.into())),
        }
    }
}

impl ProducerContext for Callbacks {
    type DeliveryOpaque = Box<SentChunk>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Self::DeliveryOpaque) {
        match result {
            Ok(message) => {
                let (partition, offset) = (message.partition(), message.offset());
                // A loss is in the figures before the owner hears of this chunk.
                let loss = self.shared.loss(sent.number, partition, offset);
                self.shared.settle(sent.ticket, Outcome::Confirmed);
                if let Some(failure) = loss {
                    self.shared.fail(failure);
                }
            }
            Err((error, _)) => self.shared.failed(sent.ticket, error),
        }
    }
}

impl WriterState {
    /// The state of a writer that was never opened.
    pub(super) fn unopened(config: &KafkaConfig) -> Arc<Self> {
        let persistent = PersistentState {
            topic: Arc::new(TopicWatch::new(config)),
            notify: NotifyCell::default(),
            throttled_ms: AtomicU64::default(),
            offsets: Mutex::default(),
        };
        let shared = Self::with(false, Arc::new(persistent));
        shared.update(|state| {
            state.failure = Some(Failure::retry("write to", "it was not opened yet"));
        });
        shared
    }

    /// The state of the next producer of the same owner.
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

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
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

    /// How long brokers throttled the writer.
    pub(super) fn throttled(&self) -> Duration {
        Duration::from_millis(self.persistent.throttled_ms.load(Ordering::Relaxed))
    }

    /// Takes a chunk into the window if there is room. An empty window takes any chunk.
    pub(super) fn take(&self, chunk: &Chunk, capability: &Capability) -> bool {
        let mut state = self.lock();
        state.lacks_room = !state.window.take(chunk, capability);
        !state.lacks_room
    }

    /// Numbers the next chunk.
    pub(super) fn number(&self, ticket: u64) -> Box<SentChunk> {
        let number = self.offsets().offer();
        Box::new(SentChunk { ticket, number })
    }

    /// Removes a chunk from the window that the client did not take.
    pub(super) fn give_back(&self, ticket: u64) {
        let mut state = self.lock();
        state.window.remove(ticket);
        state.lacks_room = true;
    }

    /// Notifies an owner whose last offer was refused that it may try again.
    pub(super) fn notify_of_room(&self) {
        if self.lock().lacks_room {
            self.persistent.notify.notify();
        }
    }

    /// Appends the new delivery reports. Returns the failure of a broken producer.
    pub(super) fn delivery_reports(&self, out: &mut Vec<DeliveryReport>) -> Option<Failure> {
        let mut state = self.lock();
        out.append(&mut state.delivery_reports);
        state.failure.clone()
    }

    fn settle(&self, ticket: u64, outcome: Outcome) {
        let mut state = self.lock();
        // A failure puts all chunks in doubt: a later chunk must not be confirmed before an earlier
        // one of its lane.
        if state.failure.is_some() || !state.window.remove(ticket) {
            return;
        }
        let is_refused = !matches!(outcome, Outcome::Confirmed);
        state
            .delivery_reports
            .push(DeliveryReport { ticket, outcome });
        let notifies = is_refused || state.lacks_room || self.persistent.notify.is_awaited();
        drop(state);
        self.changed.notify_all();
        if notifies {
            self.persistent.notify.notify();
        }
    }

    /// Counts the earlier chunks that the partition of a confirmed chunk has lost, if any. Returns
    /// the failure that tells the owner.
    fn loss(&self, number: u64, partition: i32, offset: i64) -> Option<Failure> {
        let lost = self.offsets().confirm(number, partition, offset)?;
        Some(self.persistent.topic.lose(partition, offset, lost))
    }

    /// Takes the error of a message that was not delivered.
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
                let refused = failure.at(&self.persistent.topic.endpoint);
                self.settle(ticket, Outcome::Refused(refused));
            }
            ErrorClass::Permanent => self.fail(Failure::last("write to", error.to_string())),
            ErrorClass::Transient => {
                let trouble = self.lock().trouble.clone();
                let last = trouble.map(|trouble| format!("; last: {trouble}"));
                let message = format!("{error}{}", last.unwrap_or_default());
                self.fail(Failure::retry("write to", message));
            }
        }
    }

    /// Whether a chunk that was too large can be split, or sent in a batch of its own. Notes its
    /// size.
    fn can_be_smaller(&self, ticket: u64) -> bool {
        let mut state = self.lock();
        let least = chunk_of(LEAST_MESSAGE_MAX_BYTES).get();
        let bytes = state.window.bytes_of(ticket);
        let too_large = bytes.filter(|bytes| !self.alone || *bytes > least);
        state.too_large = too_large.or(state.too_large);
        too_large.is_some()
    }

    /// Breaks the producer. The first reason stays.
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

    /// Waits for a change, for `time` at most.
    pub(super) fn wait(&self, time: Duration) {
        let waited = self.changed.wait_timeout(self.lock(), time);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until all chunks are confirmed or the producer is broken, until `by` at most. Returns the
    /// reason why chunks are unconfirmed.
    pub(super) fn drain(&self, by: Instant) -> Option<Failure> {
        let left = by.saturating_duration_since(Instant::now());
        let waits = |state: &mut State| !state.window.is_empty() && state.failure.is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), left, waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.window.is_empty() {
            return None;
        }
        // Later reports come too late for the owner.
        let late = || Failure::retry("close", "not everything was confirmed in time");
        Some(state.failure.get_or_insert_with(late).clone())
    }
}

/// The offsets of confirmed chunks.
///
/// A chunk that is offered after the confirmation of another one gets a higher offset in the same
/// partition. A lower offset means that the partition has lost messages: somebody deleted the topic
/// and created it again, or a replica without the confirmed chunks became the leader.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    /// How many chunks were offered.
    offered: u64,
    /// The highest confirmed offset of each partition, and the number of chunks offered until then.
    marks: HashMap<i32, (i64, u64)>,
}

impl Offsets {
    /// Numbers a chunk that is offered next.
    pub(super) fn offer(&mut self) -> u64 {
        self.offered += 1;
        self.offered
    }

    /// Notes a confirmed chunk. Returns the number of messages that its partition lost, if any.
    pub(super) fn confirm(&mut self, number: u64, partition: i32, offset: i64) -> Option<u64> {
        // With acks=0 brokers return no offsets.
        if offset < 0 {
            return None;
        }
        let now = (offset, self.offered);
        let mark = self.marks.entry(partition).or_insert(now);
        if offset > mark.0 {
            *mark = now;
            return None;
        }
        // Chunks that were in flight together may have their offsets in any order.
        if number <= mark.1 {
            return None;
        }
        let before = std::mem::replace(mark, now).0;
        Some(before.abs_diff(offset).saturating_add(1))
    }
}
