//! The state of a producer. The owner's thread and the client's callbacks share it.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baler_common::transport::{Failure, NotifyCell, Outcome, WriterState};
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::ProducerContext;
use rdkafka::statistics::Statistics;

use super::topic::TopicWatch;
use crate::client::{self, TokenSource};
use crate::config::{KafkaConfig, LEAST_MESSAGE_MAX_BYTES, chunk_of};
use crate::error::{ErrorClass, code_of, error_class, is_alert, is_refusal};

/// The state of one producer.
#[derive(Debug)]
pub(super) struct ProducerState {
    /// Whether each message is a batch of its own, so that the broker judges its size alone.
    pub(super) alone: bool,
    pub(super) persistent: Arc<PersistentState>,
    pub(super) writer: WriterState<Trouble>,
}

/// The state that outlives a producer.
#[derive(Debug)]
pub(super) struct PersistentState {
    pub(super) topic: Arc<TopicWatch>,
    /// How long brokers throttled the writer, in milliseconds.
    throttled_ms: AtomicU64,
    offsets: Mutex<Offsets>,
}

/// What the client and the cluster said of a producer's troubles.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// The client's last error of its connections.
    pub(super) last: Option<Box<str>>,
    /// The reason why the cluster does not accept this client.
    pub(super) refused: Option<Box<str>>,
    /// The size in bytes of a chunk that was refused because it, or its batch, was too large.
    pub(super) too_large: Option<usize>,
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
    pub(super) shared: Arc<ProducerState>,
    pub(super) tokens: TokenSource,
}

impl ClientContext for Callbacks {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.tokens.next()
    }

    fn stats(&self, statistics: Statistics) {
        let more = client::throttled_ms(&statistics);
        let throttled = &self.shared.persistent.throttled_ms;
        throttled.fetch_add(more, Ordering::Relaxed);
        self.shared.persistent.topic.take_statistics(&statistics);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let shared = &self.shared;
        match error.rdkafka_error_code() {
            // The next delivery report or offer fails too, but without the reason.
            Some(RDKafkaErrorCode::Fatal) => {
                shared.writer.fail(Failure::retry("write to", reason));
            }
            Some(code) if is_refusal(code) || is_alert(reason) => {
                shared.note(|trouble| trouble.refused = Some(reason.into()));
            }
            // Its text has the number of brokers, but not the reason.
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                let refused = shared.writer.lock().medium.refused.clone();
                match refused {
                    // The next producer reads secrets again. It fails for good if they are wrong.
                    Some(refused) => shared.writer.fail(Failure::retry("write to", refused)),
                    None => shared.note(|trouble| {
                        trouble.last.get_or_insert_with(|| reason.into());
                    }),
                }
            }
            _ => shared.note(|trouble| trouble.last = Some(reason.into())),
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
                    self.shared.writer.fail(failure);
                }
            }
            Err((error, _)) => self.shared.failed(sent.ticket, error),
        }
    }
}

impl ProducerState {
    /// The state of a writer that was never opened.
    pub(super) fn unopened(config: &KafkaConfig) -> Arc<Self> {
        let persistent = PersistentState {
            topic: Arc::new(TopicWatch::new(config)),
            throttled_ms: AtomicU64::default(),
            offsets: Mutex::default(),
        };
        Self::with(false, Arc::new(persistent), Arc::default())
    }

    /// The state of the next producer of the same owner. It is open: the client sends chunks as soon
    /// as it can.
    pub(super) fn next(&self, alone: bool) -> Arc<Self> {
        let notify = Arc::clone(self.writer.notify());
        let next = Self::with(alone, Arc::clone(&self.persistent), notify);
        next.writer.open();
        next
    }

    fn with(alone: bool, persistent: Arc<PersistentState>, notify: Arc<NotifyCell>) -> Arc<Self> {
        let endpoint = persistent.topic.endpoint.clone();
        Arc::new(Self {
            alone,
            persistent,
            writer: WriterState::new(endpoint, notify, Trouble::default()),
        })
    }

    fn note(&self, note: impl FnOnce(&mut Trouble)) {
        self.writer.update(|state| note(&mut state.medium));
    }

    fn offsets(&self) -> MutexGuard<'_, Offsets> {
        let offsets = self.persistent.offsets.lock();
        offsets.unwrap_or_else(PoisonError::into_inner)
    }

    /// How long brokers throttled the writer.
    pub(super) fn throttled(&self) -> Duration {
        Duration::from_millis(self.persistent.throttled_ms.load(Ordering::Relaxed))
    }

    /// Numbers the next chunk.
    pub(super) fn number(&self, ticket: u64) -> Box<SentChunk> {
        let number = self.offsets().offer();
        Box::new(SentChunk { ticket, number })
    }

    fn settle(&self, ticket: u64, outcome: Outcome) {
        let mut state = self.writer.lock();
        let is_refused = !matches!(outcome, Outcome::Confirmed);
        // A failure puts all chunks in doubt: a later chunk must not be confirmed before an earlier
        // one of its lane.
        if state.failure().is_none() && state.answer(ticket, outcome) {
            self.writer.answered(state, is_refused);
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
        match error_class(code_of(error)) {
            ErrorClass::TooLarge if self.can_be_smaller(ticket) => {
                let what = if self.alone {
                    "chunk"
                } else {
                    "batch of chunks"
                };
                let message = format!("a {what} is above the topic's max.message.bytes");
                self.writer.fail(Failure::retry("write to", message));
            }
            ErrorClass::TooLarge | ErrorClass::InvalidMessage => {
                let failure = Failure::last("write to", error.to_string());
                let refused = failure.at(self.writer.endpoint());
                self.settle(ticket, Outcome::Refused(refused));
            }
            ErrorClass::Permanent => {
                self.writer
                    .fail(Failure::last("write to", error.to_string()));
            }
            ErrorClass::Transient => {
                let last = self.writer.lock().medium.last.clone();
                let message = match last {
                    Some(last) => format!("{error}; last: {last}"),
                    None => error.to_string(),
                };
                self.writer.fail(Failure::retry("write to", message));
            }
        }
    }

    /// Whether a chunk that was too large can be split, or sent in a batch of its own. Notes its
    /// size.
    fn can_be_smaller(&self, ticket: u64) -> bool {
        let mut state = self.writer.lock();
        let least = chunk_of(LEAST_MESSAGE_MAX_BYTES).get();
        let bytes = state.window.bytes_of(ticket);
        let too_large = bytes.filter(|bytes| !self.alone || *bytes > least);
        state.medium.too_large = too_large.or(state.medium.too_large);
        too_large.is_some()
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
        Some(before.abs_diff(offset) + 1)
    }
}
