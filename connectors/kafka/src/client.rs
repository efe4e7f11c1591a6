//! The settings, secrets and tokens of librdkafka's clients, and what all of its clients say; requests
//! and orders to the cluster beside chunks: the topic's settings, and the creation of a topic.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use baler_common::transport::{Browse, Failure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::{DefaultClientContext, OAuthToken};
use rdkafka::config::{FromClientConfig, FromClientConfigAndContext};
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::{KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, ProducerContext};
use rdkafka::statistics::Statistics;
use serde_json::Value;

use super::config::{ClientSettings, KafkaConfig, NewTopicShape};
use super::error::{ErrorClass, error_class};

/// A producer with these settings; it connects by itself.
pub(crate) fn producer<C: ProducerContext>(
    settings: &ClientConfig,
    context: C,
) -> Result<BaseProducer<C>, Failure> {
    let client = BaseProducer::from_config_and_context(settings, context);
    client.map_err(|error| Failure::last("open", error.to_string()))
}

/// A consumer with these settings, of no topic yet; it connects by itself.
pub(crate) fn consumer<C: ConsumerContext>(
    settings: &ClientConfig,
    context: C,
) -> Result<BaseConsumer<C>, Failure> {
    let client = BaseConsumer::from_config_and_context(settings, context);
    client.map_err(|error| Failure::last("open", error.to_string()))
}

/// What both ends set where the user is silent.
pub(crate) const BOTH: &[(&str, &str)] = &[
    ("client.id", "baler"),
    // Brokers close idle connections, which is nothing to report.
    ("log.connection.close", "false"),
    // A broker that returns is found within a second; 10 s is the client's default.
    ("reconnect.backoff.max.ms", "1000"),
    // A host that does not answer costs this long, 30 s is the client's default.
    ("socket.connection.setup.timeout.ms", "5000"),
    ("socket.keepalive.enable", "true"),
    // A connection that does not answer is given up after this; 60 s is the client's default.
    ("socket.timeout.ms", "10000"),
];

/// What a writer sets where the user is silent.
pub(crate) const PRODUCER: &[(&str, &str)] = &[
    ("acks", "all"),
    ("enable.idempotence", "true"),
    // Larger chunks are sent from where they are; the client's default is 65,535.
    ("message.copy.max.bytes", "4096"),
    // Afterwards the writer is broken and its owner decides; the client's default is 300 s. This is
    // `delivery.timeout.ms` of Java's client: a node that was killed is away for about 40 s.
    ("message.timeout.ms", "120000"),
    // The partition that Kafka's Java client would choose for the key.
    ("partitioner", "murmur2_random"),
    // For how long brokers hold the writer back is in the client's statistics.
    ("statistics.interval.ms", "1000"),
];

/// What a reader sets where the user is silent.
pub(crate) const CONSUMER: &[(&str, &str)] = &[
    // What a killed reader settled since its last commit comes again; the client's default is 5 s.
    ("auto.commit.interval.ms", "500"),
    // A group that reads for the first time loses nothing.
    ("auto.offset.reset", "earliest"),
    // Offsets are stored as chunks are settled, and what is stored is committed.
    ("enable.auto.commit", "true"),
    ("enable.auto.offset.store", "false"),
    // A reader says whether it has handed out all that there is.
    ("enable.partition.eof", "true"),
    ("fetch.error.backoff.ms", "100"),
    // A queue of few messages is full often: a reader takes no more than one queue each time.
    ("fetch.queue.backoff.ms", "10"),
    ("group.id", "baler"),
    // Members learn so soon that the group deals its partitions again; 3 s is the client's default.
    ("heartbeat.interval.ms", "500"),
    // The client's defaults are 64 MiB and 100,000 messages.
    ("queued.max.messages.kbytes", "32768"),
    ("queued.min.messages", "4000"),
    // A consumer that was killed is replaced after this; 45 s is the client's default. Brokers take
    // no less than 6 s (`group.min.session.timeout.ms`).
    ("session.timeout.ms", "6000"),
    // How far the reader is behind, and how often it connected, is in the client's statistics.
    ("statistics.interval.ms", "1000"),
    // A topic, or a partition, that is new is found after this; 300 s is the client's default.
    ("topic.metadata.refresh.interval.ms", "10000"),
];

/// `max.poll.interval.ms`, unless the session lasts longer. The connector polls on a thread of its
/// own, however slow its owner is; and joining a group over a half-open connection, librdkafka waits
/// this long for the answer, five minutes by its default.
const POLL_INTERVAL_MS: u64 = 60_000;

/// A setting that names a file, and the setting of librdkafka that the file holds.
pub(crate) const FILES: [(&str, &str); 3] = [
    ("sasl.password.file", "sasl.password"),
    ("ssl.key.password.file", "ssl.key.password"),
    ("ssl.keystore.password.file", "ssl.keystore.password"),
];

/// The setting that names the file of a token.
pub(crate) const TOKEN_FILE: &str = "sasl.oauthbearer.token.file";

/// Whether a setting is this connector's own: librdkafka does not know it.
pub(crate) fn is_own(name: &str) -> bool {
    name == TOKEN_FILE || FILES.iter().any(|(file, _)| *file == name)
}

/// What a file holds; its line end is none of it. `setting` named it.
///
/// It is read for every client, so that a renewed secret is taken up.
fn read_secret(setting: &str, path: &str) -> Result<String, Failure> {
    let text = fs::read_to_string(Path::new(path)).map_err(|error| {
        let message = format!("{setting}={path}: {error}");
        Failure::last("open", message)
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

impl ClientSettings {
    /// The user's settings over defaults.
    fn over(&self, defaults: &[&[(&str, &str)]]) -> Result<ClientConfig, Failure> {
        let mut config = ClientConfig::new();
        for (name, value) in defaults.iter().copied().flatten() {
            if self.value(name).is_none() {
                config.set(*name, *value);
            }
        }
        let protocol = self.value("security.protocol").unwrap_or_default();
        let protocol = protocol.to_ascii_lowercase();
        if protocol.starts_with("sasl_") && self.value("sasl.mechanism").is_none() {
            // The client's default is GSSAPI, which needs a library of the system.
            config.set("sasl.mechanism", "PLAIN");
        }
        let names = ["ssl.ca.location", "ssl.ca.pem"];
        if protocol.ends_with("ssl") && names.iter().all(|name| self.value(name).is_none()) {
            // An OpenSSL that is not the system's does not know where the system keeps certificates.
            config.set("ssl.ca.location", "probe");
        }
        for (name, value) in self.of_the_client() {
            config.set(name, value);
        }
        for (file, direct) in FILES {
            if let Some(path) = self.value(file) {
                config.set(direct, read_secret(file, path)?);
            }
        }
        Ok(config)
    }

    /// Where tokens of OAUTHBEARER come from.
    pub(crate) fn tokens(&self) -> TokenSource {
        TokenSource {
            file: self.value(TOKEN_FILE).map(Into::into),
        }
    }
}

impl KafkaConfig {
    /// A producer's settings. `alone`: each message in a batch of its own.
    pub(crate) fn producer(&self, alone: bool) -> Result<ClientConfig, Failure> {
        let mut config = self.client.over(&[BOTH, PRODUCER])?;
        // The writer keeps to its window; the client's bounds are twice as wide because it counts
        // a message until after its delivery was reported.
        let message_bytes = self.message_bytes();
        let bytes = self.window.bytes.get().max(message_bytes);
        config.set("queue.buffering.max.kbytes", (bytes / 512 + 1).to_string());
        let chunks = self.window.chunks.get().saturating_mul(2).min(10_000_000);
        config.set("queue.buffering.max.messages", chunks.to_string());
        config.set("message.max.bytes", message_bytes.to_string());
        if alone {
            config.set("batch.num.messages", "1");
        }
        Ok(config)
    }

    /// A consumer's settings.
    pub(crate) fn consumer(&self) -> Result<ClientConfig, Failure> {
        let mut config = self.client.over(&[BOTH, CONSUMER])?;
        if self.client.value("max.poll.interval.ms").is_none() {
            let session = self.client.value("session.timeout.ms");
            let session = session.and_then(|session| session.parse().ok());
            let interval = POLL_INTERVAL_MS.max(session.unwrap_or(0));
            config.set("max.poll.interval.ms", interval.to_string());
        }
        config.set("message.max.bytes", self.message_bytes().to_string());
        Ok(config)
    }

    /// The settings of a client that looks at the topic. Its `group.id` has no effect beyond what the
    /// client needs one for: it never subscribes, and who does not subscribe joins no group.
    pub(crate) fn browser(&self, browse: Browse) -> Result<ClientConfig, Failure> {
        let mut config = self.client.over(&[BOTH, CONSUMER])?;
        config.set("message.max.bytes", self.message_bytes().to_string());
        config.set("enable.auto.commit", "false");
        config.set(
            "enable.partition.eof",
            (browse == Browse::UntilNow).to_string(),
        );
        config.set("statistics.interval.ms", "0");
        // Where a partition is read from that was cut off at its start meanwhile.
        let reset = match browse {
            Browse::FromNow => "latest",
            Browse::FromOldest | Browse::UntilNow => "earliest",
        };
        config.set("auto.offset.reset", reset);
        config.remove("group.instance.id");
        Ok(config)
    }

    /// The settings of a client that administers; it sends no chunk.
    pub(crate) fn administrator(&self) -> Result<ClientConfig, Failure> {
        self.client.over(&[BOTH])
    }

    /// Whether a client can administer: it gets no tokens of OAUTHBEARER, for which librdkafka asks
    /// by a queue that rdkafka does not serve there.
    pub(crate) fn can_administer(&self) -> bool {
        let mechanism = self.client.value("sasl.mechanism");
        !mechanism.is_some_and(|name| name.eq_ignore_ascii_case("OAUTHBEARER"))
    }
}

/// For how long brokers held the client back since the statistics before, because it was above a
/// quota: the sum of the `throttle_time_ms` in their answers. It is the broker that holds back, by
/// not reading from the connection for so long (KIP-219).
pub(crate) fn throttled(statistics: &Statistics) -> Duration {
    let windows = statistics
        .brokers
        .values()
        .filter_map(|it| it.throttle.as_ref());
    let millis = windows.map(|window| u64::try_from(window.sum).unwrap_or(0));
    Duration::from_millis(millis.fold(0, u64::saturating_add))
}

/// How long a token that does not say it itself counts.
const LIFETIME: Duration = Duration::from_secs(300);

/// Where tokens come from.
#[derive(Clone, Default)]
pub(crate) struct TokenSource {
    /// The file, read whenever the client wants a new token: at four fifths of the life of the one
    /// before.
    pub(crate) file: Option<Box<str>>,
}

impl TokenSource {
    /// A token.
    pub(crate) fn next(&self) -> Result<OAuthToken, Box<dyn Error>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let path = self.file.as_deref().ok_or("there is no file of a token")?;
        let token =
            read_secret(TOKEN_FILE, path).map_err(|failure| failure.message.into_string())?;
        from_text(token.trim(), now)
    }
}

/// A token as it was issued; if it is a JSON Web Token (RFC 7519) its own claims count.
fn from_text(token: &str, now: Duration) -> Result<OAuthToken, Box<dyn Error>> {
    if token.is_empty() || token.contains(char::is_whitespace) {
        return Err(format!("{TOKEN_FILE} holds no token").into());
    }
    let claims = token.split('.').nth(1).and_then(|part| {
        let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
        serde_json::from_slice::<Value>(&bytes).ok()
    });
    let claim = |name: &str| claims.as_ref()?.get(name);
    let ends = claim("exp").and_then(Value::as_u64);
    let ends = ends.map_or(now + LIFETIME, Duration::from_secs);
    if ends <= now {
        return Err(format!("the token in {TOKEN_FILE} has expired").into());
    }
    let principal = claim("sub").and_then(Value::as_str).unwrap_or("baler");
    Ok(OAuthToken {
        token: token.to_owned(),
        principal_name: principal.to_owned(),
        lifetime_ms: i64::try_from(ends.as_millis())?,
    })
}

/// How long the cluster may take to say what its limits are; without them the settings count.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// What the cluster says of a topic's settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct TopicSettings {
    /// `max.message.bytes`, which is the broker's `message.max.bytes` unless it was set for the
    /// topic.
    pub(crate) max_message_bytes: Option<u32>,
    /// `cleanup.policy`.
    pub(crate) cleanup_policy: Option<String>,
}

/// A client that administers.
pub(crate) struct Admin {
    client: AdminClient<DefaultClientContext>,
}

impl Admin {
    /// A client of its own: librdkafka answers such requests by another queue.
    pub(crate) fn start(config: &KafkaConfig) -> Result<Self, Failure> {
        let settings = config.administrator()?;
        let client = AdminClient::from_config(&settings)
            .map_err(|error| Failure::last("open", error.to_string()))?;
        Ok(Self { client })
    }

    /// The topic's settings; nothing if the cluster does not say them: it is old, is busy, or does
    /// not allow the request.
    pub(crate) fn settings(&self, topic: &str, by: Instant) -> Option<TopicSettings> {
        let options = options(by.min(Instant::now() + REQUEST_TIMEOUT));
        let resource = [ResourceSpecifier::Topic(topic)];
        let described = wait(self.client.describe_configs(&resource, &options), by)?;
        let resource = described.ok()?.into_iter().next()?.ok()?;
        let value = |name| resource.get(name)?.value.clone();
        Some(TopicSettings {
            max_message_bytes: value("max.message.bytes").and_then(|bytes| bytes.parse().ok()),
            cleanup_policy: value("cleanup.policy"),
        })
    }

    /// Creates a topic. One that exists is left as it is.
    pub(crate) fn create(
        &self,
        topic: &str,
        shape: NewTopicShape,
        by: Instant,
    ) -> Result<(), Failure> {
        let replication = TopicReplication::Fixed(i32::from(shape.replication.get()));
        let new = NewTopic::new(topic, i32::from(shape.partitions.get()), replication);
        let created = wait(self.client.create_topics([&new], &options(by)), by);
        let late = || Failure::retry("create", "no broker answered in time");
        let result = created.ok_or_else(late)?;
        let result = result.map_err(|error| Failure::retry("create", error.to_string()))?;
        match result.into_iter().next() {
            None | Some(Ok(_)) | Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => Ok(()),
            Some(Err((_, code))) => Err(refused(code)),
        }
    }
}

fn refused(code: RDKafkaErrorCode) -> Failure {
    use RDKafkaErrorCode as Code;
    let impossible = matches!(
        code,
        Code::InvalidConfig | Code::InvalidPartitions | Code::PolicyViolation
    );
    // Too few brokers may be a matter of time: they are on their way up.
    if impossible || error_class(code) == ErrorClass::Permanent {
        Failure::last("create", code.to_string())
    } else {
        Failure::retry("create", code.to_string())
    }
}

fn options(by: Instant) -> AdminOptions {
    // librdkafka takes no less than a millisecond.
    let left = by.saturating_duration_since(Instant::now());
    let left = Some(left.max(Duration::from_millis(1)));
    AdminOptions::new()
        .request_timeout(left)
        .operation_timeout(left)
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for an answer, a little longer than the client itself does.
fn wait<T>(answer: impl Future<Output = KafkaResult<T>>, by: Instant) -> Option<KafkaResult<T>> {
    let by = by + Duration::from_millis(200);
    let mut answer = pin!(answer);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(answer) = answer.as_mut().poll(&mut context) {
            return Some(answer);
        }
        let left = by.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}
