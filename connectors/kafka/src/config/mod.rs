//! Where the cluster is, and how its ends behave.

pub(crate) mod settings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use baler_common::transport::WindowLimits;
use baler_common::transport::uri::{Host, Uri, UriError, set};

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
    pub(crate) window: WindowLimits,
    pub(crate) max_message_bytes: NonZeroU32,
    /// Whether the user set it.
    pub(crate) max_message_is_set: bool,
    pub(crate) create_topic: Option<NewTopicShape>,
    pub(crate) partition_by: PartitionBy,
    pub(crate) revoke_timeout: Duration,
    pub(crate) client: ClientSettings,
    pub(crate) embedded: Option<Arc<EmbeddedCluster>>,
}

/// What decides about the partition of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionBy {
    /// The chunk's producer: all its chunks are in one partition, in order.
    Producer,
    /// The chunk's producer and lane: each lane is in one partition, in order. Where the sender
    /// deals records to lanes by their trace, a trace is in one partition: `partition_by=trace`.
    Lane,
    /// The partitions in turn. No order is kept.
    RoundRobin,
}

/// What a message has beside the chunk, at most, rounded up: key 44, header 80, the record's frame
/// 20 and that of a batch 61 bytes.
const OVERHEAD: u32 = 512;

/// The default of librdkafka's `message.max.bytes`, below that of brokers.
const MESSAGE_MAX_BYTES: NonZeroU32 = NonZeroU32::MIN.saturating_add(999_999);

/// How many partitions a topic of the embedded cluster has.
const DEFAULT_PARTITIONS: u16 = 4;

/// On how many brokers of an embedded cluster each partition is, if there are so many.
const MAX_REPLICATION: u16 = 3;

/// The least that librdkafka takes as `message.max.bytes`.
pub(crate) const LEAST_MESSAGE_MAX_BYTES: u32 = 1_000;

impl KafkaConfig {
    /// This topic of the cluster that these brokers (`host:port,host:port`) belong to, and
    /// defaults.
    pub fn new(bootstrap_servers: &str, topic: impl Into<Box<str>>) -> Self {
        let topic = topic.into();
        Self {
            endpoint: format!("{SCHEME}://{bootstrap_servers}/{topic}").into(),
            topic,
            window: WindowLimits::new(NonZeroU32::MIN.saturating_add(1023)),
            max_message_bytes: MESSAGE_MAX_BYTES,
            max_message_is_set: false,
            create_topic: None,
            partition_by: PartitionBy::Producer,
            revoke_timeout: Duration::from_secs(3),
            client: ClientSettings::new(bootstrap_servers),
            embedded: None,
        }
    }

    /// A topic of a new cluster inside this process, and defaults.
    ///
    /// # Errors
    ///
    /// The cluster cannot be started.
    pub fn embedded(topic: impl Into<Box<str>>, partitions: u16) -> Result<Self, KafkaConfigError> {
        let topic = topic.into();
        let cluster = EmbeddedCluster::start(&topic, partitions)?;
        Ok(Self::in_cluster(Arc::new(cluster), topic))
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
        let create_topic = uri.take_with("create_topic", "PARTITIONS,REPLICATION", |text| {
            text.parse::<NewTopicShape>().ok()
        })?;
        let mut config = if uri.scheme() == EMBEDDED_SCHEME {
            uri.no_host()?;
            let partitions = uri.take_number::<NonZeroU16>("partitions")?;
            if partitions.is_some() && create_topic.is_some() {
                let why = "both say how many partitions there are";
                return Err(KafkaConfigError::conflict(
                    "partitions",
                    "create_topic",
                    why,
                ));
            }
            let brokers = uri.take_number::<NonZeroU16>("brokers")?;
            let brokers = brokers.unwrap_or(NonZeroU16::MIN);
            let cluster = EmbeddedCluster::with_brokers(brokers)?;
            let partitions = partitions.map_or(DEFAULT_PARTITIONS, Into::into);
            let replication = brokers.get().min(MAX_REPLICATION);
            let (partitions, replication) = match create_topic {
                Some(shape) => (shape.partitions.get(), shape.replication.get()),
                None => (partitions, replication),
            };
            cluster.create_topic(&topic, partitions, replication)?;
            Self::in_cluster(Arc::new(cluster), topic)
        } else {
            if uri.hosts().is_empty() {
                return Err(UriError::missing("the host").into());
            }
            let hosts: Vec<_> = uri.hosts().iter().map(Host::to_string).collect();
            Self::new(&hosts.join(","), topic)
        };
        config.create_topic = create_topic.filter(|_| config.embedded.is_none());
        config.window.take(&mut uri)?;
        if let Some(bytes) =
            uri.take_with("message.max.bytes", "a size from 1000 bytes on", |text| {
                let bytes = baler_common::transport::uri::parse_bytes(text)?;
                let bytes = NonZeroU32::new(u32::try_from(bytes).ok()?)?;
                (bytes.get() >= LEAST_MESSAGE_MAX_BYTES).then_some(bytes)
            })?
        {
            config = config.max_message_bytes(bytes);
        }
        let choices = [
            ("producer", PartitionBy::Producer),
            ("lane", PartitionBy::Lane),
            ("round_robin", PartitionBy::RoundRobin),
            // Whoever sends deals records to lanes by their trace.
            ("trace", PartitionBy::Lane),
        ];
        set(
            &mut config.partition_by,
            uri.take_choice("partition_by", &choices)?,
        );
        set(
            &mut config.revoke_timeout,
            uri.take_duration("revoke_timeout")?,
        );
        let mut credentials = Vec::new();
        for (name, value) in [
            ("sasl.username", uri.user()),
            ("sasl.password", uri.password()),
        ] {
            credentials.extend(value.map(|value| (name.into(), value.into())));
        }
        let mut rest = uri.take_rest();
        uri.finish()?;
        if !credentials.is_empty() {
            check_user(&credentials, &rest)?;
        }
        rest.append(&mut credentials);
        settings::check(&rest)?;
        for (name, value) in rest {
            config.client.set(&name, value);
        }
        config.client.try_out()?;
        config.check_topic()?;
        Ok(config)
    }

    /// Whether the topic that is to be created can be.
    pub(crate) fn check_topic(&self) -> Result<(), KafkaConfigError> {
        match self.create_topic {
            Some(shape) if !self.can_administer() => Err(KafkaConfigError::conflict(
                format!("create_topic={shape}"),
                "sasl.mechanism=OAUTHBEARER",
                "the client that creates topics cannot get a token; create the topic beforehand",
            )),
            _ => Ok(()),
        }
    }

    /// Sets how many chunks may be offered and not yet confirmed.
    #[must_use]
    pub fn window_chunks(mut self, chunks: NonZeroU32) -> Self {
        self.window.chunks = chunks;
        self
    }

    /// Sets how many bytes may be offered and not yet confirmed; one chunk is always taken.
    #[must_use]
    pub fn window_bytes(mut self, bytes: NonZeroU32) -> Self {
        self.window.bytes = bytes;
        self
    }

    /// Sets the largest message, in bytes (`message.max.bytes`; at least 1,000). The largest chunk
    /// is 512 bytes smaller. Where it is not set, the topic's limit counts, up to 1,000,000 bytes.
    #[must_use]
    pub fn max_message_bytes(mut self, bytes: NonZeroU32) -> Self {
        let least = NonZeroU32::MIN.saturating_add(LEAST_MESSAGE_MAX_BYTES - 1);
        self.max_message_bytes = bytes.max(least);
        self.max_message_is_set = true;
        self
    }

    /// Has the writer create the topic when it opens, if there is none.
    #[must_use]
    pub fn create_topic(mut self, shape: NewTopicShape) -> Self {
        self.create_topic = Some(shape);
        self
    }

    /// Sets what decides about the partition of a chunk.
    #[must_use]
    pub fn partition_by(mut self, partition_by: PartitionBy) -> Self {
        self.partition_by = partition_by;
        self
    }

    /// Sets how long a reader's owner may still settle chunks of partitions that go to another
    /// reader; the group waits for it.
    #[must_use]
    pub fn revoke_timeout(mut self, time: Duration) -> Self {
        self.revoke_timeout = time;
        self
    }

    /// Sets settings of librdkafka, by their names there.
    ///
    /// # Errors
    ///
    /// One is unknown to librdkafka or has a value that it does not take; two contradict each
    /// other, or one contradicts what this connector decides.
    pub fn client_settings(mut self, settings: &[(&str, &str)]) -> Result<Self, KafkaConfigError> {
        let settings: Vec<(Box<str>, Box<str>)> = settings
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        settings::check(&settings)?;
        for (name, value) in settings {
            self.client.set(&name, value);
        }
        self.client.try_out()?;
        Ok(self)
    }

    /// The cluster inside this process, if it is one.
    pub fn embedded_cluster(&self) -> Option<&EmbeddedCluster> {
        self.embedded.as_deref()
    }

    /// The largest chunk that fits into a message.
    pub(crate) fn max_chunk_bytes(&self) -> NonZeroUsize {
        chunk_of(self.max_message_bytes.get())
    }
}

/// Checks that the URI may have these credentials beside these settings.
fn check_user(
    credentials: &[(Box<str>, Box<str>)],
    settings: &[(Box<str>, Box<str>)],
) -> Result<(), KafkaConfigError> {
    const USER: &str = "the user of the URI";
    let value = |name: &str| settings.iter().find(|(it, _)| **it == *name);
    for (name, _) in credentials {
        if value(name).is_some() {
            let why = "there can be one of them";
            return Err(KafkaConfigError::conflict(USER, &**name, why));
        }
    }
    let protocol = value("security.protocol").map_or("plaintext", |(_, protocol)| protocol);
    if protocol.to_ascii_lowercase().starts_with("sasl_") {
        return Ok(());
    }
    Err(KafkaConfigError::conflict(
        USER,
        format!("security.protocol={protocol}"),
        "a user needs sasl_ssl or sasl_plaintext",
    ))
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

/// The shape of a topic that is to be created: `PARTITIONS,REPLICATION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewTopicShape {
    /// How many partitions it has.
    pub partitions: NonZeroU16,
    /// On how many brokers each partition is.
    pub replication: NonZeroU16,
}

/// A text is not `PARTITIONS,REPLICATION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not PARTITIONS,REPLICATION such as 12,3")]
pub struct ShapeError;

impl FromStr for NewTopicShape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let (partitions, replication) = text.split_once(',').ok_or(ShapeError)?;
        Ok(Self {
            partitions: partitions.parse().map_err(|_| ShapeError)?,
            replication: replication.parse().map_err(|_| ShapeError)?,
        })
    }
}

impl fmt::Display for NewTopicShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.partitions, self.replication)
    }
}
