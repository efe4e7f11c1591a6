//! The address of the cluster, the settings of both ends, and the user's settings of librdkafka.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use baler_common::non_zero;
use baler_common::number::to_usize;
use baler_common::transport::uri::{Host, Uri, UriError, parse_bytes, set};
use baler_common::transport::{Order, WindowLimits};
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use super::embedded::EmbeddedCluster;
use super::error::KafkaConfigError;
use super::settings::{BOTH, CLASSIC, CONSUMER, FILES, PRODUCER, TOKEN_FILE, is_own};
use super::{EMBEDDED_SCHEME, SCHEME};

/// The settings of both ends.
#[derive(Clone)]
pub struct KafkaConfig {
    /// The URI without settings and credentials.
    pub(crate) endpoint: Box<str>,
    pub(crate) topic: Box<str>,
    pub(crate) client: ClientSettings,
    pub(crate) embedded: Option<Arc<EmbeddedCluster>>,
    /// The limit of unconfirmed chunks.
    pub window: WindowLimits,
    /// The largest message, in bytes (`message.max.bytes`; at least 1,000). The largest chunk is 512
    /// bytes smaller. By default the topic's limit counts, up to 1,000,000 bytes.
    pub max_message_bytes: Option<NonZeroU32>,
    /// The writer creates the topic when it opens, if there is none.
    pub create_topic: Option<NewTopicShape>,
    /// How the writer chooses the partition of a chunk.
    pub partition_by: PartitionBy,
    /// How long a reader's owner may still settle chunks of partitions that go to another reader.
    /// The group waits for it.
    pub revoke_timeout: Duration,
}

/// How a writer chooses the partition of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionBy {
    /// By the producer: all its chunks are in one partition, in order.
    Producer,
    /// By the producer and the lane: each lane is in one partition, in order.
    Lane,
    /// In turn. There is no order.
    RoundRobin,
    /// By the lane, for all producers: with `n` partitions lane `k` goes to partition `k mod n`.
    /// Senders distribute records to lanes by their trace, so that each trace is in one partition.
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

/// The shape of a new topic: `PARTITIONS,REPLICATION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewTopicShape {
    /// The number of partitions.
    pub partitions: NonZeroU16,
    /// The number of brokers that have each partition.
    pub replication: NonZeroU16,
}

/// The most bytes of a message beside its chunk, rounded up: 44 for the key, 80 for the header, 20 for
/// the record's frame and 61 for the frame of a batch.
const OVERHEAD: u32 = 512;

/// The default of librdkafka's `message.max.bytes`. It is below the default of brokers.
const MESSAGE_MAX_BYTES: u32 = 1_000_000;

/// The lowest `message.max.bytes` that librdkafka accepts.
pub(crate) const LEAST_MESSAGE_MAX_BYTES: u32 = 1_000;

/// The number of partitions of a topic in the embedded cluster.
const DEFAULT_PARTITIONS: NonZeroU16 = non_zero!(4);

/// The highest number of brokers of the embedded cluster that have a partition.
const MAX_REPLICATION: NonZeroU16 = non_zero!(3);

impl KafkaConfig {
    /// The default settings for a topic of the cluster with these brokers (`host:port,host:port`).
    pub fn new(bootstrap_servers: &str, topic: impl Into<Box<str>>) -> Self {
        let topic = topic.into();
        Self {
            endpoint: format!("{SCHEME}://{bootstrap_servers}/{topic}").into(),
            topic,
            client: ClientSettings::new(bootstrap_servers),
            embedded: None,
            window: WindowLimits::new(non_zero!(1_024)),
            max_message_bytes: None,
            create_topic: None,
            partition_by: PartitionBy::Producer,
            revoke_timeout: Duration::from_secs(3),
        }
    }

    /// The default settings for a topic of this embedded cluster.
    pub fn in_cluster(cluster: Arc<EmbeddedCluster>, topic: impl Into<Box<str>>) -> Self {
        let mut config = Self::new(cluster.bootstrap_servers(), topic);
        config.embedded = Some(cluster);
        config
    }

    /// The settings in `kafka://host:port,host:port/topic?setting=value&…` or
    /// `kafka+mock:topic?brokers=1&partitions=4`; README.md lists them. Settings that this connector does
    /// not know go to librdkafka.
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
                check_user(name, &rest)?;
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

    /// The default settings for a topic of a new embedded cluster.
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
    /// librdkafka does not know a setting or does not accept its value; two settings contradict each
    /// other, or this connector decides about a setting.
    pub fn client_settings(mut self, settings: &[(&str, &str)]) -> Result<Self, KafkaConfigError> {
        let settings = settings.iter();
        let owned = settings.map(|(name, value)| ((*name).into(), (*value).into()));
        self.client.set_all(owned.collect())?;
        Ok(self)
    }

    /// The embedded cluster, if there is one.
    pub fn embedded_cluster(&self) -> Option<&EmbeddedCluster> {
        self.embedded.as_deref()
    }

    /// The largest message, in bytes, by the settings.
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

/// The largest chunk in a message of this size. It has a byte even if the message is too small for
/// any.
pub(crate) fn chunk_of(message_bytes: u32) -> NonZeroUsize {
    let bytes = message_bytes.checked_sub(OVERHEAD).map(to_usize);
    let bytes = bytes.and_then(NonZeroUsize::new);
    bytes.unwrap_or(NonZeroUsize::MIN)
}

/// Writes the endpoint, as a URI without settings and credentials.
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

/// Names of the same setting. librdkafka accepts all of them.
const ALIASES: &[&[&str]] = &[
    &["acks", "request.required.acks"],
    &["compression.codec", "compression.type"],
    &["fetch.message.max.bytes", "max.partition.fetch.bytes"],
    &["linger.ms", "queue.buffering.max.ms"],
    &["max.in.flight", "max.in.flight.requests.per.connection"],
    &["message.send.max.retries", "retries"],
    &["message.timeout.ms", "delivery.timeout.ms"],
    &["sasl.mechanism", "sasl.mechanisms"],
];

/// The connector's own settings, and further common settings of librdkafka. The error over an unknown
/// setting proposes the nearest name.
const KNOWN: &str = "batch.num.messages batch.size compression.level create_topic debug \
    enable.partition.eof fetch.min.bytes fetch.wait.max.ms group.instance.id group.protocol \
    group.remote.assignor isolation.level max.poll.interval.ms message.max.bytes partition.assignment.strategy partition_by \
    receive.message.max.bytes retry.backoff.ms revoke_timeout sasl.password sasl.username \
    security.protocol ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.key.location \
    ssl.key.password window window_chunks";

const WINDOW: &str = "the window bounds the client's queue";
const SETTLE: &str = "what is settled, and nothing else, is committed";
const HOSTS: &str = "name the brokers there";

/// The settings that this connector decides about: the name, the deciding setting, and the reason.
const DECIDED: &[(&str, &str, &str)] = &[
    ("bootstrap.servers", "the hosts of the URI", HOSTS),
    ("metadata.broker.list", "the hosts of the URI", HOSTS),
    ("enable.auto.commit", "settle", SETTLE),
    ("enable.auto.offset.store", "settle", SETTLE),
    (
        "enable.partition.eof",
        "the reader",
        "it has to know when it is at the end of its partitions",
    ),
    ("queue.buffering.max.kbytes", "window", WINDOW),
    ("queue.buffering.max.messages", "window_chunks", WINDOW),
    (
        "transactional.id",
        "confirmations",
        "a chunk is confirmed by its delivery, there are no transactions",
    ),
];

/// Names and values.
type Settings = [(Box<str>, Box<str>)];

fn value<'a>(settings: &'a Settings, name: &str) -> Option<&'a str> {
    let found = settings.iter().find(|(given, _)| **given == *name);
    found.map(|(_, value)| &**value)
}

/// The value of a setting with several names, in lower case. It is empty if none is given.
fn lower(settings: &Settings, names: &[&str]) -> String {
    let found = names.iter().find_map(|name| value(settings, name));
    found.unwrap_or_default().to_ascii_lowercase()
}

/// Checks that settings contradict neither each other nor this connector.
fn check(given: &Settings) -> Result<(), KafkaConfigError> {
    let is_given = |name: &&&str| value(given, name).is_some();
    let conflict =
        |first: &str, second: &str, why: &str| Err(KafkaConfigError::conflict(first, second, why));
    for (name, decided_by, why) in DECIDED {
        if is_given(&name) {
            return conflict(name, decided_by, why);
        }
    }
    let files = FILES.map(|(file, direct)| [file, direct]);
    let files = files.iter().map(<[_; 2]>::as_slice);
    for names in ALIASES.iter().copied().chain(files) {
        let mut found = names.iter().filter(is_given);
        if let (Some(first), Some(second)) = (found.next(), found.next()) {
            return conflict(first, second, "both set the same");
        }
    }
    let acks = lower(given, &["acks", "request.required.acks"]);
    let idempotent = value(given, "enable.idempotence").is_none_or(|value| value == "true");
    if idempotent && !matches!(&*acks, "" | "all" | "-1") {
        let why = "a producer is idempotent only if all replicas acknowledge; turn it off to have \
                   fewer";
        return conflict(&format!("acks={acks}"), "enable.idempotence=true", why);
    }
    if lower(given, &["sasl.oauthbearer.method"]) == "oidc" {
        let why = "fetching tokens needs libcurl, which is not built in; have another process write \
                   the token to the file that sasl.oauthbearer.token.file names";
        return conflict("sasl.oauthbearer.method=oidc", "this build", why);
    }
    let mechanism = lower(given, &["sasl.mechanism", "sasl.mechanisms"]);
    let is_bearer = mechanism == "oauthbearer";
    if is_bearer != value(given, TOKEN_FILE).is_some() {
        let why = "sasl.mechanism=OAUTHBEARER takes its token from sasl.oauthbearer.token.file, and \
                   no other mechanism takes one";
        let file = if is_bearer {
            "no token file"
        } else {
            TOKEN_FILE
        };
        return conflict(&format!("sasl.mechanism={mechanism}"), file, why);
    }
    if cfg!(feature = "tls") {
        return Ok(());
    }
    // librdkafka needs OpenSSL for TLS, and for all mechanisms of SASL except PLAIN.
    let protocol = lower(given, &["security.protocol"]);
    let needs_tls = if protocol.ends_with("ssl") {
        format!("security.protocol={protocol}")
    } else if !matches!(&*mechanism, "" | "plain") {
        format!("sasl.mechanism={mechanism}")
    } else {
        return Ok(());
    };
    let why = "this build has no TLS for Kafka; build the program with --features kafka-tls, or the \
               crate baler-connector-kafka with the feature tls";
    Err(KafkaConfigError::setting(&needs_tls, why))
}

/// Checks that these settings allow this part of the credentials in the URI.
fn check_user(name: &str, settings: &Settings) -> Result<(), KafkaConfigError> {
    const USER: &str = "the user of the URI";
    if value(settings, name).is_some() {
        let why = "there can be one of them";
        return Err(KafkaConfigError::conflict(USER, name, why));
    }
    let protocol = lower(settings, &["security.protocol"]);
    if protocol.starts_with("sasl_") {
        return Ok(());
    }
    Err(KafkaConfigError::conflict(
        USER,
        &format!("security.protocol={protocol}"),
        "a user needs sasl_ssl or sasl_plaintext",
    ))
}

/// The user's settings of librdkafka.
#[derive(Clone)]
pub(crate) struct ClientSettings(BTreeMap<Box<str>, Box<str>>);

impl ClientSettings {
    pub(crate) fn new(bootstrap_servers: &str) -> Self {
        let servers = ("bootstrap.servers".into(), bootstrap_servers.into());
        Self(BTreeMap::from([servers]))
    }

    /// Adds settings that librdkafka accepts.
    fn set_all(&mut self, settings: Vec<(Box<str>, Box<str>)>) -> Result<(), KafkaConfigError> {
        check(&settings)?;
        self.0.extend(settings);
        if self.has_consumer_protocol() {
            let given = CLASSIC.iter().find(|(name, _)| self.0.contains_key(*name));
            if let Some((name, why)) = given {
                return Err(KafkaConfigError::conflict(
                    name,
                    "group.protocol=consumer",
                    why,
                ));
            }
        }
        let mut config = ClientConfig::new();
        for (name, value) in self.of_the_client() {
            config.set(name, value);
        }
        let (message, name, value) = match config.create_native_config() {
            Ok(_) => return Ok(()),
            Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, _, name, _)) => {
                let set = [BOTH, PRODUCER, CONSUMER].into_iter().flatten();
                let known = set
                    .map(|(name, _)| *name)
                    .chain(ALIASES.iter().copied().flatten().copied())
                    .chain(KNOWN.split_whitespace())
                    .chain(FILES.map(|(file, _)| file))
                    .chain([TOKEN_FILE]);
                return Err(UriError::unknown(name, known).into());
            }
            Err(KafkaError::ClientConfig(_, message, name, value)) => (message, name, value),
            Err(error) => (error.to_string(), "a setting".into(), String::new()),
        };
        let is_secret = name.contains("password") || name.contains("secret");
        let message = if is_secret && !value.is_empty() {
            message.replace(&value, "***")
        } else {
            message
        };
        Err(KafkaConfigError::setting(&name, &message))
    }

    /// The settings that librdkafka knows.
    pub(crate) fn of_the_client(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter().map(|(name, value)| (&**name, &**value));
        all.filter(|(name, _)| !is_own(name))
    }

    /// Whether readers use the group protocol of KIP-848.
    pub(crate) fn has_consumer_protocol(&self) -> bool {
        let protocol = self.value("group.protocol");
        protocol.is_some_and(|protocol| protocol.eq_ignore_ascii_case("consumer"))
    }

    /// The value of a setting, by any of its names.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let aliases = ALIASES.iter().find(|aliases| aliases.contains(&name));
        let mut names = aliases.into_iter().copied().flatten();
        let direct = self.0.get(name);
        let value = direct.or_else(|| names.find_map(|alias| self.0.get(*alias)));
        value.map(|value| &**value)
    }
}
