//! Where the cluster is, and how its ends behave.

pub(crate) mod settings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use baler_common::transport::uri::{Host, Uri, UriError, parse_bytes, set};
use baler_common::transport::{Order, WindowLimits};

use crate::embedded::EmbeddedCluster;
use crate::error::KafkaConfigError;
use crate::{EMBEDDED_SCHEME, SCHEME};
use settings::ClientSettings;

/// The settings of both ends.
#[derive(Clone)]
pub struct KafkaConfig {
    /// The URI without settings and credentials.
    pub(crate) endpoint: Box<str>,
    pub(crate) topic: Box<str>,
    pub(crate) client: ClientSettings,
    pub(crate) embedded: Option<Arc<EmbeddedCluster>>,
    /// How much may be offered and not yet confirmed.
    pub window: WindowLimits,
    /// The largest message, in bytes (`message.max.bytes`; at least 1,000). The largest chunk is 512
    /// bytes smaller. Where it is not set, the topic's limit counts, up to 1,000,000 bytes.
    pub max_message_bytes: Option<NonZeroU32>,
    /// The writer creates the topic when it opens, if there is none.
    pub create_topic: Option<NewTopicShape>,
    /// What decides about the partition of a chunk.
    pub partition_by: PartitionBy,
    /// How long a reader's owner may still settle chunks of partitions that go to another reader;
    /// the group waits for it.
    pub revoke_timeout: Duration,
}

/// What decides about the partition of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionBy {
    /// The chunk's producer: all its chunks are in one partition, in order.
    Producer,
    /// The chunk's producer and lane: each lane is in one partition, in order.
    Lane,
    /// The partitions in turn. No order is kept.
    RoundRobin,
    /// The chunk's lane, whoever the producer is: lane `k` of `n` partitions goes to partition
    /// `k mod n`. Senders distribute records to lanes by their trace, so that each trace is in one
    /// partition.
    Trace,
}

impl PartitionBy {
    pub(crate) fn order(self) -> Order {
        match self {
            Self::Producer | Self::Lane | Self::Trace => Order::PerLane,
            Self::RoundRobin => Order::Unordered,
        }
    }
}

/// The shape of a topic that is to be created: `PARTITIONS,REPLICATION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewTopicShape {
    /// How many partitions it has.
    pub partitions: NonZeroU16,
    /// On how many brokers each partition is.
    pub replication: NonZeroU16,
}

/// What a message has beside the chunk, at most, rounded up: key 44, header 80, the record's frame
/// 20 and that of a batch 61 bytes.
const OVERHEAD: u32 = 512;

/// The default of librdkafka's `message.max.bytes`, below that of brokers.
const MESSAGE_MAX_BYTES: u32 = 1_000_000;

/// The least that librdkafka takes as `message.max.bytes`.
pub(crate) const LEAST_MESSAGE_MAX_BYTES: u32 = 1_000;

/// How many partitions a topic of the embedded cluster has, and on how many brokers each is.
const DEFAULT_PARTITIONS: NonZeroU16 = NonZeroU16::MIN.saturating_add(3);
const MAX_REPLICATION: NonZeroU16 = NonZeroU16::MIN.saturating_add(2);

impl KafkaConfig {
    /// This topic of the cluster that these brokers (`host:port,host:port`) belong to, and
    /// defaults.
    pub fn new(bootstrap_servers: &str, topic: impl Into<Box<str>>) -> Self {
        let topic = topic.into();
        Self {
            endpoint: format!("{SCHEME}://{bootstrap_servers}/{topic}").into(),
            topic,
            client: ClientSettings::new(bootstrap_servers),
            embedded: None,
            window: WindowLimits::new(NonZeroU32::MIN.saturating_add(1023)),
            max_message_bytes: None,
            create_topic: None,
            partition_by: PartitionBy::Producer,
            revoke_timeout: Duration::from_secs(3),
        }
    }

    /// A topic of this cluster inside the process, and defaults.
    pub fn in_cluster(cluster: Arc<EmbeddedCluster>, topic: impl Into<Box<str>>) -> Self {
        let mut config = Self::new(cluster.bootstrap_servers(), topic);
        config.embedded = Some(cluster);
        config
    }

    /// The settings in `kafka://host:port,host:port/topic?setting=value&…` or
    /// `kafka+mock:topic?brokers=1&partitions=4`; README.md lists them. What this connector does not know
    /// goes to librdkafka.
    ///
    /// # Errors
    ///
    /// The URI has no host or topic, a setting is unknown or wrong, two settings contradict each
    /// other, or the embedded cluster cannot be started.
    pub fn from_uri(mut uri: Uri) -> Result<Self, KafkaConfigError> {
        let topic: Box<str> = uri.path().trim_matches('/').into();
        if topic.is_empty() {
            return Err(uri.missing_in_path("the topic").into());
        }
        let shape = uri.take_with("create_topic", "PARTITIONS,REPLICATION", shape)?;
        let mut config = if uri.scheme() == EMBEDDED_SCHEME {
            Self::embedded(&mut uri, topic, shape)?
        } else if uri.hosts().is_empty() {
            return Err(UriError::missing("the host").into());
        } else {
            let hosts: Vec<_> = uri.hosts().iter().map(Host::to_string).collect();
            let mut config = Self::new(&hosts.join(","), topic);
            config.create_topic = shape;
            config
        };
        config.window.take(&mut uri)?;
        let bytes = "a size from 1000 bytes on";
        config.max_message_bytes = uri.take_with("message.max.bytes", bytes, |text| {
            let bytes = u32::try_from(parse_bytes(text)?).ok()?;
            NonZeroU32::new(bytes).filter(|_| bytes >= LEAST_MESSAGE_MAX_BYTES)
        })?;
        let choices = [
            ("producer", PartitionBy::Producer),
            ("lane", PartitionBy::Lane),
            ("round_robin", PartitionBy::RoundRobin),
            ("trace", PartitionBy::Trace),
        ];
        let partition_by = uri.take_choice("partition_by", &choices)?;
        set(&mut config.partition_by, partition_by);
        let revoke_timeout = uri.take_duration("revoke_timeout")?;
        set(&mut config.revoke_timeout, revoke_timeout);
        let credentials = [
            ("sasl.username", uri.user().map(Box::from)),
            ("sasl.password", uri.password().map(Box::from)),
        ];
        let mut rest = uri.take_rest();
        uri.finish()?;
        for (name, value) in credentials {
            if let Some(value) = value {
                settings::check_user(name, &rest)?;
                rest.push((name.into(), value));
            }
        }
        config.client.set_all(rest)?;
        if let Some(shape) = shape.filter(|_| !config.can_administer()) {
            return Err(KafkaConfigError::conflict(
                &format!("create_topic={},{}", shape.partitions, shape.replication),
                "sasl.mechanism=OAUTHBEARER",
                "the client that creates topics cannot get a token; create the topic beforehand",
            ));
        }
        Ok(config)
    }

    /// A topic of a new cluster inside this process.
    fn embedded(
        uri: &mut Uri,
        topic: Box<str>,
        shape: Option<NewTopicShape>,
    ) -> Result<Self, KafkaConfigError> {
        uri.no_host()?;
        let partitions = uri.take_number::<NonZeroU16>("partitions")?;
        if partitions.is_some() && shape.is_some() {
            let why = "both say how many partitions there are";
            return Err(KafkaConfigError::conflict(
                "partitions",
                "create_topic",
                why,
            ));
        }
        let brokers = uri.take_number("brokers")?.unwrap_or(NonZeroU16::MIN);
        let shape = shape.unwrap_or_else(|| NewTopicShape {
            partitions: partitions.unwrap_or(DEFAULT_PARTITIONS),
            replication: brokers.min(MAX_REPLICATION),
        });
        let cluster = EmbeddedCluster::with_brokers(brokers)?;
        cluster.create_topic(&topic, shape.partitions.get(), shape.replication.get())?;
        Ok(Self::in_cluster(Arc::new(cluster), topic))
    }

    /// Sets settings of librdkafka, by their names there.
    ///
    /// # Errors
    ///
    /// One is unknown to librdkafka or has a value that it does not take; two contradict each
    /// other, or one contradicts what this connector decides.
    pub fn client_settings(mut self, settings: &[(&str, &str)]) -> Result<Self, KafkaConfigError> {
        let settings = settings.iter();
        let owned = settings.map(|(name, value)| ((*name).into(), (*value).into()));
        self.client.set_all(owned.collect())?;
        Ok(self)
    }

    /// The cluster inside this process, if it is one.
    pub fn embedded_cluster(&self) -> Option<&EmbeddedCluster> {
        self.embedded.as_deref()
    }

    /// The largest message, in bytes, as far as the settings say.
    pub(crate) fn message_bytes(&self) -> u32 {
        let set = self.max_message_bytes.map(NonZeroU32::get);
        set.unwrap_or(MESSAGE_MAX_BYTES)
            .max(LEAST_MESSAGE_MAX_BYTES)
    }
}

/// The shape in `PARTITIONS,REPLICATION`.
fn shape(text: &str) -> Option<NewTopicShape> {
    let (partitions, replication) = text.split_once(',')?;
    Some(NewTopicShape {
        partitions: partitions.parse().ok()?,
        replication: replication.parse().ok()?,
    })
}

/// The largest chunk in a message of so many bytes.
pub(crate) fn chunk_of(message_bytes: u32) -> NonZeroUsize {
    usize::try_from(message_bytes.saturating_sub(OVERHEAD))
        .ok()
        .and_then(NonZeroUsize::new)
        .unwrap_or(NonZeroUsize::MIN)
}

/// The endpoint, as a URI without settings and credentials.
impl fmt::Display for KafkaConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.endpoint)
    }
}

impl fmt::Debug for KafkaConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Settings may hold passwords.
        write!(f, "KafkaConfig({self})")
    }
}
