//! One producer of librdkafka with the thread that polls it, and the limit of a message's size.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::number::to_usize;
use baler_common::transport::{Failure, RetryClass};
use rdkafka::error::{IsError, KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::Metadata;
use rdkafka::producer::{BaseProducer, Producer as _, PurgeConfig};

use super::state::{Callbacks, ProducerState};
use crate::client::{self, time_left, topic_settings};
use crate::config::{KafkaConfig, LEAST_MESSAGE_MAX_BYTES, chunk_of};
use crate::error::{ErrorClass, code_of, error_class};

/// How long one call of poll lasts. It serves every report at once and returns no earlier. It spins
/// for the last fraction of a millisecond, so a longer call is cheaper.
const POLL: Duration = Duration::from_millis(500);

/// How long a topic may be unknown in one opening: a broker that creates it automatically, or has just
/// heard of it, first says that it is.
const TOPIC_APPEARS: Duration = Duration::from_secs(3);

/// How long a topic may be unknown over several short openings: somebody may be about to create it.
const TOPIC_IS_CREATED: Duration = Duration::from_secs(10);

/// How long one request for the topic may take. The producer notices a refused connection between
/// two requests.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The time between two requests for the topic.
const REPEAT_AFTER: Duration = Duration::from_millis(50);

/// A producer, polled by a thread of its own.
pub(super) struct Producer {
    shared: Arc<ProducerState>,
    /// `None` once only the thread holds it.
    client: Option<Arc<BaseProducer<Callbacks>>>,
    stop: Arc<AtomicBool>,
    /// It closes when the thread ends.
    ended: Receiver<()>,
}

/// The answers of the cluster that there is no such topic.
#[derive(Debug, Default)]
pub(super) struct Absence {
    /// Whether the topic was there before.
    was_there: bool,
    /// The time of the first answer.
    since: Option<Instant>,
}

impl Absence {
    /// Notes an answer in an opening that began at `start`. The failure is final if the topic was
    /// never there: one that was deleted may come back.
    fn failure(&mut self, topic: &str, start: Instant) -> Failure {
        let since = *self.since.get_or_insert_with(Instant::now);
        let state = if self.was_there {
            "is gone"
        } else {
            "does not exist"
        };
        let message = format!(
            "topic {topic} {state}, and no broker creates it; create it, or add \
             create_topic=PARTITIONS,REPLICATION"
        );
        let is_late = since.elapsed() >= TOPIC_IS_CREATED || start.elapsed() >= TOPIC_APPEARS;
        if is_late && !self.was_there {
            Failure::last("open", message)
        } else {
            Failure::retry("open", message)
        }
    }
}

/// The cluster's answer about the topic.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) partitions: i32,
    /// The lowest number of replicas of a partition.
    pub(super) replicas: usize,
}

impl Producer {
    /// Starts a producer, which connects by itself.
    pub(super) fn start(
        config: &KafkaConfig,
        shared: &Arc<ProducerState>,
    ) -> Result<Self, Failure> {
        let callbacks = Callbacks {
            shared: Arc::clone(shared),
            tokens: config.client.tokens(),
        };
        let settings = config.producer(shared.alone)?;
        let client = Arc::new(client::producer(&settings, callbacks)?);
        let stop = Arc::new(AtomicBool::new(false));
        let (running, ended) = channel::<()>();
        let producer = Self {
            shared: Arc::clone(shared),
            client: Some(Arc::clone(&client)),
            stop: Arc::clone(&stop),
            ended,
        };
        let shared = Arc::clone(shared);
        thread::Builder::new()
            .name("baler-kafka-send".into())
            .spawn(move || {
                let polled = Failure::catching("write to", || {
                    while !stop.load(Ordering::Acquire) {
                        client.poll(POLL);
                        shared.writer.notify_of_room();
                    }
                });
                if let Err(failure) = polled {
                    shared.writer.fail(failure);
                }
                // To drop the last reference takes a moment. The owner does not wait for it.
                drop(client);
                drop(running);
            })
            .map_err(|error| Failure::last("open", error.to_string()))?;
        Ok(producer)
    }

    pub(super) fn client(&self) -> Option<&BaseProducer<Callbacks>> {
        self.client.as_deref()
    }

    /// Asks for the topic until the cluster has it, until `by` at most.
    pub(super) fn find(&self, absence: &mut Absence, by: Instant) -> Result<Topic, Failure> {
        let topic = &*self.shared.persistent.topic.name;
        let found = self.ask(absence, by, |time| {
            let metadata = self.metadata(Some(topic), time)?;
            let failed = |code| Err(KafkaError::MetadataFetch(code));
            let found = metadata.topics().iter().find(|found| found.name() == topic);
            let Some(found) = found else {
                return failed(RDKafkaErrorCode::UnknownTopicOrPartition);
            };
            if let Some(error) = found.error().filter(IsError::is_error) {
                return failed(error.into());
            }
            let replicas = found.partitions().iter().map(|it| it.replicas().len());
            let partitions = i32::try_from(found.partitions().len());
            let (Some(replicas), Ok(partitions)) = (replicas.min(), partitions) else {
                return failed(RDKafkaErrorCode::LeaderNotAvailable);
            };
            Ok(Topic {
                partitions,
                replicas,
            })
        })?;
        *absence = Absence {
            was_there: true,
            since: None,
        };
        Ok(found)
    }

    /// Waits until a broker answers, until `by` at most.
    pub(super) fn reach(&self, by: Instant) -> Result<(), Failure> {
        let absence = &mut Absence::default();
        self.ask(absence, by, |time| self.metadata(None, time).map(drop))
    }

    fn metadata(&self, topic: Option<&str>, time: Duration) -> Result<Metadata, KafkaError> {
        let client = self.client().ok_or(KafkaError::Canceled)?;
        client.client().fetch_metadata(topic, time)
    }

    /// Repeats a request until the cluster answers it, until `by` at most.
    fn ask<T>(
        &self,
        absence: &mut Absence,
        by: Instant,
        request: impl Fn(Duration) -> Result<T, KafkaError>,
    ) -> Result<T, Failure> {
        let start = Instant::now();
        let mut last: Box<str> = "no broker answered in time".into();
        let mut absent = None;
        loop {
            let state = self.shared.writer.lock();
            if let Some(reason) = &state.medium.refused {
                return Err(Failure::last("connect to", reason.clone()));
            }
            if let Some(error) = state.failure() {
                return Err(error.into());
            }
            let left = time_left(by);
            if left.is_zero() {
                let unreachable = || {
                    let message = state.medium.last.clone().unwrap_or(last);
                    Failure::retry("connect to", message)
                };
                return Err(absent.unwrap_or_else(unreachable));
            }
            drop(state);
            let error = match request(left.min(REQUEST_TIMEOUT)) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let code = code_of(&error);
            let is_unknown = matches!(
                code,
                RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic
            );
            if is_unknown {
                let failure = absence.failure(&self.shared.persistent.topic.name, start);
                if failure.class == RetryClass::Final {
                    return Err(failure);
                }
                absent = Some(failure);
            } else if error_class(code) == ErrorClass::Permanent {
                return Err(Failure::last("open", code.to_string()));
            }
            last = error.to_string().into();
            let now = Instant::now();
            let again = by.min(now + REPEAT_AFTER);
            drop(self.shared.writer.wait(again, now, |state| {
                state.failure().is_some() || state.medium.refused.is_some()
            }));
        }
    }

    /// Gives up the messages in flight, and ends the producer in its thread.
    fn end(&mut self) {
        if let Some(client) = self.client.take() {
            client.purge(PurgeConfig::default().queue().inflight().non_blocking());
        }
        self.stop.store(true, Ordering::Release);
    }

    /// Ends the producer, and waits for its end until `by`.
    pub(super) fn close(mut self, by: Instant) {
        self.end();
        // The thread drops the other end of the channel, which has no values, when it ends. A
        // producer that takes longer ends by itself.
        self.ended.recv_timeout(time_left(by)).ok();
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.end();
    }
}

/// The limits of a message's size, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Whether the cluster was asked since the last chunk that was too large.
    pub(super) was_asked: bool,
    /// Whether the settings were compared with the topic's limit.
    pub(super) is_compared: bool,
    /// The topic's limit, as the cluster says.
    pub(super) topic: Option<u32>,
    /// The limit that follows from a refused chunk.
    pub(super) refusal_limit: Option<u32>,
    /// The size of a chunk that was refused, alone in its batch.
    pub(super) refused: Option<usize>,
}

impl Limits {
    /// Notes the size of a chunk that was refused because it, or its batch, was too large.
    pub(super) fn too_large(&mut self, bytes: usize, alone: bool) {
        self.was_asked = false;
        self.refused = alone.then_some(bytes);
    }

    /// The largest message, in bytes. It asks the cluster when the writer opens first, and after a
    /// chunk that was too large. Other reopenings need no request and are quick.
    pub(super) fn learn(&mut self, config: &KafkaConfig, by: Instant) -> Result<u32, Failure> {
        // The embedded cluster has no limits.
        let answers = config.embedded.is_none() && config.can_administer();
        if answers && !self.was_asked {
            self.ask(config, by)?;
        }
        self.was_asked = true;
        let most = config.message_bytes();
        let is_first = !std::mem::replace(&mut self.is_compared, true);
        let is_set = config.max_message_bytes.is_some();
        if let Some(limit) = self
            .topic
            .filter(|limit| is_first && is_set && most > *limit)
        {
            let topic = &config.topic;
            let message = format!(
                "message.max.bytes={most} conflicts with max.message.bytes={limit} of topic \
                 {topic}: the topic takes no such message; lower the one or raise the other"
            );
            return Err(Failure::last("open", message));
        }
        if let Some(bytes) = self.refused.take() {
            self.halve(bytes);
        }
        let limits = [self.topic, self.refusal_limit];
        Ok(limits.into_iter().flatten().fold(most, u32::min))
    }

    /// Asks for the topic's limit. A topic that would delete chunks is an error.
    fn ask(&mut self, config: &KafkaConfig, by: Instant) -> Result<(), Failure> {
        let Some(settings) = topic_settings(config, by)? else {
            return Ok(());
        };
        self.topic = settings.max_message_bytes.or(self.topic);
        let Some(policy) = settings.compacts() else {
            return Ok(());
        };
        let topic = &config.topic;
        let message = format!(
            "topic {topic} has cleanup.policy={policy}, which keeps only the last chunk of each \
             key and deletes the others; set cleanup.policy=delete for it, or choose another topic"
        );
        Err(Failure::last("open", message))
    }

    /// Halves the writer's limit, unless the topic's limit explains why a chunk was too large.
    pub(super) fn halve(&mut self, bytes: usize) {
        let is_explained = |limit| bytes > chunk_of(limit).get();
        if !self.topic.is_some_and(is_explained) {
            // Headers and framing make a message of half a chunk larger than that half.
            let half = u32::try_from(bytes / 2 + to_usize(LEAST_MESSAGE_MAX_BYTES / 2)).ok();
            self.refusal_limit = half.map(|half| half.max(LEAST_MESSAGE_MAX_BYTES));
        }
    }
}
