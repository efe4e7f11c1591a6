//! A reader that looks at a topic and is no member of a group.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use baler_common::transport::{
    Browse, ChunkReader, Failure, Order, ReaderCapability, ReaderCloseReport, Received, Settled,
    Token, TransportError, Verdict,
};
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::{Offset, TopicPartitionList};

use super::state::{Arrived, no_value};
use crate::SCHEME;
use crate::client::{self, TokenSource, time_left};
use crate::config::KafkaConfig;
use crate::error::{ErrorClass, error_class, refusal};

/// How long the cluster may take to answer which partitions there are and where they end.
const WATERMARK_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause before the next request.
const WATERMARK_INTERVAL: Duration = Duration::from_millis(500);

/// Shows chunks of a topic and leaves no trace: it joins no group and commits nothing, so that
/// consumers keep their partitions and positions. Settling a chunk does nothing.
///
/// It reads the partitions that exist when it connects. It has no thread:
/// [`receive`](ChunkReader::receive) asks the cluster, and may take two seconds beyond its deadline
/// until the partitions are known.
pub struct KafkaBrowser {
    capability: ReaderCapability,
    config: KafkaConfig,
    browse: Browse,
    /// The only partitions to read, with the first offset and the end of each.
    ranges: Option<BTreeMap<i32, Range<i64>>>,
    client: BaseConsumer<Context>,
    /// The partitions that are not read to their ends, with these ends. `None` before they are known.
    ends: Option<BTreeMap<i32, i64>>,
    /// When the cluster may be asked for the partitions.
    ask_at: Instant,
    held: HashSet<Token>,
    tokens: u64,
    demand: usize,
}

impl fmt::Debug for KafkaBrowser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaBrowser")
            .field("config", &self.config)
            .field("browse", &self.browse)
            .finish_non_exhaustive()
    }
}

/// The client's callbacks.
struct Context {
    tokens: TokenSource,
    /// Why brokers refuse this client, if they do.
    refused: Mutex<Option<Failure>>,
}

impl ClientContext for Context {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.tokens.next()
    }

    fn error(&self, error: KafkaError, reason: &str) {
        if let Some(failure) = refusal(&error, reason) {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.get_or_insert(failure);
        }
    }
}

impl ConsumerContext for Context {}

impl KafkaBrowser {
    /// Makes a client. Brokers that are away are found when they return.
    ///
    /// # Errors
    ///
    /// librdkafka does not take the settings together.
    pub fn open(config: KafkaConfig, browse: Browse) -> Result<Self, TransportError> {
        Self::create(config, browse, None)
    }

    fn create(
        config: KafkaConfig,
        browse: Browse,
        ranges: Option<BTreeMap<i32, Range<i64>>>,
    ) -> Result<Self, TransportError> {
        let context = Context {
            tokens: config.client.tokens(),
            refused: Mutex::default(),
        };
        let client = config.browser(browse).and_then(|mut settings| {
            if ranges.is_some() {
                // The start of a range may be removed after it was checked.
                settings.set("auto.offset.reset", "error");
            }
            client::consumer(&settings, context)
        });
        let client = client.map_err(|failure| failure.at(&config.endpoint))?;
        let mut capability = ReaderCapability::new(SCHEME, Order::PerLane);
        capability.ends = browse == Browse::UntilNow;
        Ok(Self {
            capability,
            config,
            browse,
            ranges,
            client,
            ends: None,
            ask_at: Instant::now(),
            held: HashSet::new(),
            tokens: 0,
            demand: usize::MAX,
        })
    }

    /// As [`open`](Self::open), for the chunks at these offsets of these partitions; the ends are
    /// excluded. The reader ends after them. It fails with the final error of
    /// [`receive`](ChunkReader::receive) if the topic lacks some of them: they were removed, or are
    /// not written yet.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_ranges(
        config: KafkaConfig,
        ranges: BTreeMap<i32, Range<i64>>,
    ) -> Result<Self, TransportError> {
        Self::create(config, Browse::UntilNow, Some(ranges))
    }

    /// Returns the part of a partition to read, which has the offsets of `whole`; `None` for
    /// nothing.
    fn part(&self, partition: i32, whole: Range<i64>) -> Result<Option<Range<i64>>, Failure> {
        let part = match &self.ranges {
            None => whole,
            Some(ranges) => {
                let Some(wanted) = ranges.get(&partition).cloned() else {
                    return Ok(None);
                };
                if !wanted.is_empty() && (wanted.start < whole.start || wanted.end > whole.end) {
                    let message = format!(
                        "partition {partition} has the offsets {} to {}, not all of {} to {}",
                        whole.start, whole.end, wanted.start, wanted.end
                    );
                    return Err(Failure::last("look at", message));
                }
                wanted
            }
        };
        Ok((!part.is_empty()).then_some(part))
    }

    /// Returns the partitions of a topic, with the offset of the oldest message and the one after the
    /// newest message of each. Asks the cluster until this time.
    ///
    /// # Errors
    ///
    /// There is no such topic, the cluster refuses this client, or it does not answer in time.
    pub fn offsets(
        config: KafkaConfig,
        by: Instant,
    ) -> Result<BTreeMap<i32, Range<i64>>, TransportError> {
        let browser = Self::open(config, Browse::UntilNow)?;
        let offsets = || {
            let partitions = browser.partitions()?.into_iter();
            let offsets = partitions.map(|it| Ok((it, browser.whole(it)?)));
            offsets.collect::<Result<_, Failure>>()
        };
        loop {
            // There are no messages: this serves the callbacks for tokens and errors.
            browser.client.poll(Duration::ZERO);
            let error = match offsets() {
                Ok(offsets) => return Ok(offsets),
                Err(failure) => browser.refusal_or(failure),
            };
            if !error.is_retryable() || Instant::now() >= by {
                return Err(error);
            }
            browser.client.poll(WATERMARK_INTERVAL);
        }
    }

    /// Returns the partitions of the topic.
    fn partitions(&self) -> Result<Vec<i32>, Failure> {
        let topic = &*self.config.topic;
        let metadata = self.client.fetch_metadata(Some(topic), WATERMARK_TIMEOUT);
        let metadata = metadata.map_err(failed)?;
        let found = metadata.topics().iter().find(|it| it.name() == topic);
        let error = found.and_then(|it| it.error().map(RDKafkaErrorCode::from));
        match found.filter(|it| error.is_none() && !it.partitions().is_empty()) {
            Some(found) => Ok(found.partitions().iter().map(|it| it.id()).collect()),
            None => Err(self.unreadable(error)),
        }
    }

    /// Returns the offset of the oldest message of a partition, and the one after the newest message.
    fn whole(&self, partition: i32) -> Result<Range<i64>, Failure> {
        let topic = &self.config.topic;
        let whole = self
            .client
            .fetch_watermarks(topic, partition, WATERMARK_TIMEOUT);
        let (oldest, end) = whole.map_err(failed)?;
        Ok(oldest..end)
    }

    /// Asks for the partitions and their ends, and begins to read them.
    fn begin(&self) -> Result<BTreeMap<i32, i64>, Failure> {
        let topic = &*self.config.topic;
        let partitions = self.partitions()?;
        let start = match self.browse {
            Browse::FromNow => Offset::End,
            Browse::FromOldest | Browse::UntilNow => Offset::Beginning,
        };
        let mut ends = BTreeMap::new();
        let mut list = TopicPartitionList::new();
        let wanted = self.ranges.iter().flat_map(BTreeMap::keys);
        if let Some(missing) = wanted.copied().find(|it| !partitions.contains(it)) {
            let message = format!("topic {topic} has no partition {missing}");
            return Err(Failure::last("look at", message));
        }
        for partition in partitions {
            let mut start = start;
            if self.browse == Browse::UntilNow {
                let Some(part) = self.part(partition, self.whole(partition)?)? else {
                    continue;
                };
                ends.insert(partition, part.end);
                if self.ranges.is_some() {
                    start = Offset::Offset(part.start);
                }
            }
            list.add_partition_offset(topic, partition, start)
                .map_err(failed)?;
        }
        self.client.assign(&list).map_err(failed)?;
        Ok(ends)
    }

    /// The reason why there is nothing to read.
    fn unreadable(&self, error: Option<RDKafkaErrorCode>) -> Failure {
        let topic = &self.config.topic;
        let (message, passes) = match error {
            None | Some(RDKafkaErrorCode::UnknownTopicOrPartition) => {
                let message = format!("there is no topic {topic}");
                // Somebody may create it.
                (message, self.browse != Browse::UntilNow)
            }
            Some(code) => {
                let message = format!("topic {topic}: {code}");
                (message, error_class(code) == ErrorClass::Transient)
            }
        };
        match passes {
            true => Failure::retry("look at", message),
            false => Failure::last("look at", message),
        }
    }

    /// The reason why brokers refuse this client, or else the failure.
    fn refusal_or(&self, failure: Failure) -> TransportError {
        let refused = &self.client.context().refused;
        let refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = refused.clone().unwrap_or(failure);
        failure.at(&self.config.endpoint)
    }

    /// Whether the browser shows a message. Notes when its partition is at its end.
    fn is_shown(&mut self, partition: i32, offset: i64) -> bool {
        if self.browse != Browse::UntilNow {
            return true;
        }
        let ends = self.ends.get_or_insert_default();
        let Some(end) = ends.get(&partition).copied() else {
            return false;
        };
        if offset.checked_add(1).is_none_or(|next| next >= end) {
            ends.remove(&partition);
        }
        offset < end
    }

    fn hand_out(&mut self, partition: i32, offset: i64, arrived: Option<Arrived>) -> Received {
        let endpoint = &self.config.endpoint;
        let Some(arrived) = arrived else {
            return no_value(endpoint, partition, offset);
        };
        self.tokens = self.tokens.wrapping_add(1);
        let token = Token(self.tokens);
        self.held.insert(token);
        Received::Chunk(arrived.delivery(endpoint, token))
    }
}

/// A call that may succeed later.
fn failed(error: KafkaError) -> Failure {
    Failure::retry("look at", error.to_string())
}

impl ChunkReader for KafkaBrowser {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        if self.ends.is_none() {
            let until = self.ask_at.min(by);
            // There are no messages yet: this serves the callbacks for tokens and errors.
            while self.client.poll(time_left(until)).is_some() {}
            if Instant::now() < self.ask_at {
                return Ok(Received::Idle);
            }
            let ends = self.begin();
            self.ask_at = Instant::now() + WATERMARK_INTERVAL;
            self.ends = Some(ends.map_err(|failure| self.refusal_or(failure))?);
        }
        loop {
            let is_at_end = self.ends.as_ref().is_some_and(BTreeMap::is_empty);
            if is_at_end && self.browse == Browse::UntilNow {
                return Ok(Received::End);
            }
            if self.held.len() >= self.demand {
                return Ok(Received::Idle);
            }
            let polled = match self.client.poll(time_left(by)) {
                None => return Ok(Received::Idle),
                Some(polled) => polled.map(|message| {
                    let arrived = Arrived::from_message(&message);
                    (message.partition(), message.offset(), arrived)
                }),
            };
            match polled {
                Ok((partition, offset, arrived)) if self.is_shown(partition, offset) => {
                    return Ok(self.hand_out(partition, offset, arrived));
                }
                Ok(_) => {}
                // The rest of the partition has no messages, but marks of transactions.
                Err(KafkaError::PartitionEOF(partition)) => {
                    self.ends.get_or_insert_default().remove(&partition);
                }
                // One of several brokers is away. Another error says when all are.
                Err(KafkaError::MessageConsumption(
                    RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::Resolve,
                )) => {}
                Err(error) => {
                    let failure = Failure::retry("look at", error.to_string());
                    return Err(self.refusal_or(failure));
                }
            }
        }
    }

    fn settle(&mut self, token: Token, _: Verdict) -> Result<Settled, TransportError> {
        Ok(if self.held.remove(&token) {
            Settled::Done
        } else {
            Settled::Stale
        })
    }

    fn waits_for(&self) -> Option<&'static str> {
        match &self.ends {
            None => Some("partitions"),
            Some(ends) if self.browse == Browse::UntilNow && !ends.is_empty() => Some("messages"),
            Some(_) => None,
        }
    }

    fn close(self: Box<Self>, _: Instant) -> ReaderCloseReport {
        ReaderCloseReport {
            unsettled: self.held.len(),
            ..ReaderCloseReport::default()
        }
    }
}
