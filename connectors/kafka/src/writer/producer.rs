//! One life of librdkafka's producer, with the thread that polls it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::Failure;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{IsError, RDKafkaErrorCode};
use rdkafka::metadata::Metadata;
use rdkafka::producer::{BaseProducer, Producer as _, PurgeConfig};

use super::state::{Callbacks, ProducerState};
use crate::config::KafkaConfig;
use crate::error::{Concern, code_of, concern};

/// How long one call of poll lasts. It returns no earlier, serves every report at once, and
/// spins for its last fraction of a millisecond: the longer, the cheaper.
const POLL: Duration = Duration::from_millis(500);

/// How long a topic may be unknown: a broker that creates topics says so at first.
const TOPIC_APPEARS: Duration = Duration::from_secs(2);

/// How long one question for the topic may take; whoever refuses the connection is heard between.
const QUESTION: Duration = Duration::from_secs(1);

/// What a question yields: the code of what is wrong, and its text.
type Answer<T> = Result<T, (RDKafkaErrorCode, Box<str>)>;

fn told(code: RDKafkaErrorCode) -> (RDKafkaErrorCode, Box<str>) {
    (code, code.to_string().into())
}

/// Asks until the cluster answers, `by` at most.
fn until<T>(
    producer_state: &ProducerState,
    by: Instant,
    ask: impl Fn(Duration) -> Answer<T>,
) -> Result<T, Failure> {
    let start = Instant::now();
    let mut last: Box<str> = "no broker answered in time".into();
    loop {
        let now = Instant::now();
        if let Some(reason) = producer_state.refused() {
            return Err(Failure::last("connect to", reason));
        }
        if let Some(failure) = producer_state.failure() {
            return Err(failure);
        }
        if now >= by {
            let message = producer_state.trouble().unwrap_or(last);
            return Err(Failure::retry("connect to", message));
        }
        match ask((by - now).min(QUESTION)) {
            Ok(found) => return Ok(found),
            Err((code, message)) => {
                let unknown = matches!(
                    code,
                    RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic
                );
                let appears = unknown && start.elapsed() < TOPIC_APPEARS;
                if concern(code) == Concern::Everything && !appears {
                    return Err(Failure::last("open", message));
                }
                last = message;
            }
        }
        producer_state.wait((by - now).min(Duration::from_millis(50)));
    }
}

/// A producer, polled by a thread of its own.
pub(super) struct Producer {
    /// Empty once it was given to its thread to end it.
    client: Option<Arc<BaseProducer<Callbacks>>>,
    stop: Arc<AtomicBool>,
    /// Its end is the end of the thread.
    ended: Receiver<()>,
}

/// What the cluster says of the topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Topic {
    pub(super) partitions: i32,
    /// The number of replicas of the partition that has fewest.
    pub(super) replicas: usize,
}

impl Producer {
    /// Starts a producer; it connects by itself.
    pub(super) fn start(
        config: &KafkaConfig,
        producer_state: &Arc<ProducerState>,
        alone: bool,
    ) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::last("open", error.to_string());
        let callbacks = Callbacks {
            producer_state: Arc::clone(producer_state),
            tokens: config.client.tokens(),
        };
        let client = BaseProducer::from_config_and_context(&config.producer(alone)?, callbacks)
            .map_err(|error| failed(&error))?;
        let client = Arc::new(client);
        let polled = Arc::clone(&client);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let producer_state = Arc::clone(producer_state);
        let (running, ended) = channel::<()>();
        thread::Builder::new()
            .name("baler-kafka-send".into())
            .spawn(move || {
                while !stopped.load(Ordering::Acquire) {
                    polled.poll(POLL);
                    producer_state.pay();
                }
                // The last one to hold it: ending it takes a moment that no owner shall wait for.
                drop(polled);
                drop(running);
            })
            .map_err(|error| failed(&error))?;
        Ok(Self {
            client: Some(client),
            stop,
            ended,
        })
    }

    pub(super) fn client(&self) -> Option<&BaseProducer<Callbacks>> {
        self.client.as_deref()
    }

    /// Asks for the topic until the cluster answers, `by` at most.
    pub(super) fn find(
        &self,
        topic: &str,
        producer_state: &ProducerState,
        by: Instant,
    ) -> Result<Topic, Failure> {
        until(producer_state, by, |time| self.ask(topic, time))
    }

    /// Waits until a broker answers, `by` at most.
    pub(super) fn reach(&self, producer_state: &ProducerState, by: Instant) -> Result<(), Failure> {
        until(producer_state, by, |time| {
            self.metadata(None, time).map(drop)
        })
    }

    fn metadata(&self, topic: Option<&str>, time: Duration) -> Answer<Metadata> {
        let Some(client) = self.client() else {
            return Err(told(RDKafkaErrorCode::BrokerDestroy));
        };
        let metadata = client.client().fetch_metadata(topic, time);
        metadata.map_err(|error| {
            let code = code_of(&error).unwrap_or(RDKafkaErrorCode::Unknown);
            (code, error.to_string().into())
        })
    }

    fn ask(&self, topic: &str, time: Duration) -> Answer<Topic> {
        let metadata = self.metadata(Some(topic), time)?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        let Some(found) = found else {
            return Err(told(RDKafkaErrorCode::UnknownTopicOrPartition));
        };
        if let Some(error) = found.error().filter(IsError::is_error) {
            return Err(told(error.into()));
        }
        let replicas = found.partitions().iter().map(|it| it.replicas().len());
        match replicas.min() {
            Some(replicas) => Ok(Topic {
                partitions: i32::try_from(found.partitions().len()).unwrap_or(i32::MAX),
                replicas,
            }),
            None => Err(told(RDKafkaErrorCode::LeaderNotAvailable)),
        }
    }

    /// Gives up what is under way and ends the producer in its thread.
    fn end(&mut self) {
        if let Some(client) = self.client.take() {
            client.purge(PurgeConfig::default().queue().inflight().non_blocking());
        }
        self.stop.store(true, Ordering::Release);
    }

    /// Ends the producer, and waits for that until `by`.
    pub(super) fn close(mut self, by: Instant) {
        self.end();
        // Nothing is ever sent: it is over, or it takes longer and ends by itself.
        self.ended
            .recv_timeout(by.saturating_duration_since(Instant::now()))
            .ok();
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.end();
    }
}
