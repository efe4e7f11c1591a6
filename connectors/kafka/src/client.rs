//! The settings, secrets and tokens of librdkafka's clients; requests for a topic's settings, and the
//! creation of a topic.

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
use super::settings::{BOTH, CLASSIC, CONSUMER, FILES, PRODUCER, TOKEN_FILE};

/// A producer with these settings, which connects by itself.
pub(crate) fn producer<C: ProducerContext>(
    settings: &ClientConfig,
    context: C,
) -> Result<BaseProducer<C>, Failure> {
    let client = BaseProducer::from_config_and_context(settings, context);
    client.map_err(|error| Failure::last("open", error.to_string()))
}

/// A consumer with these settings, which connects by itself. It has no topic yet.
pub(crate) fn consumer<C: ConsumerContext>(
    settings: &ClientConfig,
    context: C,
) -> Result<BaseConsumer<C>, Failure> {
    let client = BaseConsumer::from_config_and_context(settings, context);
    client.map_err(|error| Failure::last("open", error.to_string()))
}

/// `max.poll.interval.ms`, unless the session lasts longer. A separate thread polls, however slow the
/// owner is. librdkafka also waits this long to join a group over a half-open connection. Its own
/// default is five minutes.
const POLL_INTERVAL_MS: u64 = 60_000;

/// The content of the file that `setting` names, without its last line break.
///
/// Each client reads it again, so that a renewed secret counts.
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
        let is_refused = |name| {
            let is_classic = CLASSIC.iter().any(|(classic, _)| *classic == name);
            is_classic && self.has_consumer_protocol()
        };
        for (name, value) in defaults.iter().copied().flatten() {
            if self.value(name).is_none() && !is_refused(*name) {
                config.set(*name, *value);
            }
        }
        let protocol = self.value("security.protocol").unwrap_or("plaintext");
        let protocol = protocol.to_ascii_lowercase();
        if protocol.starts_with("sasl_") && self.value("sasl.mechanism").is_none() {
            // The client's own default is GSSAPI, which needs a library of the system.
            config.set("sasl.mechanism", "PLAIN");
        }
        let names = ["ssl.ca.location", "ssl.ca.pem"];
        if protocol.ends_with("ssl") && names.iter().all(|name| self.value(name).is_none()) {
            // A bundled OpenSSL does not know where the system has its certificates.
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

    /// The source of tokens for OAUTHBEARER.
    pub(crate) fn tokens(&self) -> TokenSource {
        TokenSource {
            file: self.value(TOKEN_FILE).map(Into::into),
        }
    }
}

impl KafkaConfig {
    /// A producer's settings. With `alone` each message is a batch of its own.
    pub(crate) fn producer(&self, alone: bool) -> Result<ClientConfig, Failure> {
        let mut config = self.client.over(&[BOTH, PRODUCER])?;
        // The writer keeps to its window. The client's limits are twice as wide, because it counts a
        // message until after its delivery report.
        let message_bytes = self.message_bytes();
        let bytes = self.window.bytes.get().max(message_bytes);
        config.set("queue.buffering.max.kbytes", (bytes / 512 + 1).to_string());
        let chunks = self.window.chunks.get().min(5_000_000) * 2;
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
            let interval = session.unwrap_or(POLL_INTERVAL_MS).max(POLL_INTERVAL_MS);
            config.set("max.poll.interval.ms", interval.to_string());
        }
        config.set("message.max.bytes", self.message_bytes().to_string());
        Ok(config)
    }

    /// The settings of a browser. The client requires a `group.id`, but a client that does not
    /// subscribe joins no group.
    pub(crate) fn browser(&self, browse: Browse) -> Result<ClientConfig, Failure> {
        let mut config = self.client.over(&[BOTH, CONSUMER])?;
        config.set("message.max.bytes", self.message_bytes().to_string());
        config.set("enable.auto.commit", "false");
        config.set(
            "enable.partition.eof",
            (browse == Browse::UntilNow).to_string(),
        );
        config.set("statistics.interval.ms", "0");
        // Where to continue if the start of a partition was deleted meanwhile.
        let reset = match browse {
            Browse::FromNow => "latest",
            Browse::FromOldest | Browse::UntilNow => "earliest",
        };
        config.set("auto.offset.reset", reset);
        config.remove("group.instance.id");
        Ok(config)
    }

    /// A client for requests about topics. librdkafka answers them in another queue.
    fn admin_client(&self) -> Result<AdminClient<DefaultClientContext>, Failure> {
        let settings = self.client.over(&[BOTH])?;
        AdminClient::from_config(&settings)
            .map_err(|error| Failure::last("open", error.to_string()))
    }

    /// Whether an admin client can connect. It gets no tokens of OAUTHBEARER: librdkafka asks for
    /// them in a queue that rdkafka does not serve there.
    pub(crate) fn can_administer(&self) -> bool {
        let mechanism = self.client.value("sasl.mechanism");
        !mechanism.is_some_and(|name| name.eq_ignore_ascii_case("OAUTHBEARER"))
    }
}

/// How many milliseconds brokers throttled the client since the last statistics, because it was above
/// a quota: the sum of the `throttle_time_ms` in their answers. For that time a broker does not read
/// from the connection (KIP-219).
pub(crate) fn throttled_ms(statistics: &Statistics) -> u64 {
    let brokers = statistics.brokers.values();
    let windows = brokers.filter_map(|it| it.throttle.as_ref());
    windows.filter_map(|it| u64::try_from(it.sum).ok()).sum()
}

/// The lifetime of a token without an expiry time.
const LIFETIME: Duration = Duration::from_secs(300);

/// The source of tokens.
#[derive(Clone, Default)]
pub(crate) struct TokenSource {
    /// The file. It is read when the client wants a new token: after four fifths of the last token's
    /// lifetime.
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

/// A token as it was issued. A JSON Web Token (RFC 7519) has an expiry time and a name.
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

/// How long the cluster may take to answer with a topic's settings.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// A topic's settings, as far as the cluster answers.
#[derive(Debug, Clone)]
pub(crate) struct TopicSettings {
    /// `max.message.bytes`. Its default is the broker's `message.max.bytes`.
    pub(crate) max_message_bytes: Option<u32>,
    /// `cleanup.policy`.
    pub(crate) cleanup_policy: Option<String>,
}

impl TopicSettings {
    /// The `cleanup.policy`, if Kafka keeps only the last message of each key because of it.
    pub(crate) fn compacts(&self) -> Option<&str> {
        let policy = self.cleanup_policy.as_deref()?;
        let compacts = policy.split(',').any(|policy| policy.trim() == "compact");
        compacts.then_some(policy)
    }
}

/// The topic's settings. There are none if the cluster is old or busy, or forbids the request.
pub(crate) fn topic_settings(
    config: &KafkaConfig,
    by: Instant,
) -> Result<Option<TopicSettings>, Failure> {
    let client = config.admin_client()?;
    let options = options(by.min(Instant::now() + REQUEST_TIMEOUT));
    let resource = [ResourceSpecifier::Topic(&config.topic)];
    let described = wait(client.describe_configs(&resource, &options), by);
    let mut described = described.and_then(Result::ok).into_iter().flatten();
    let resource = described.next().and_then(Result::ok);
    Ok(resource.map(|resource| {
        let value = |name| resource.get(name)?.value.clone();
        TopicSettings {
            max_message_bytes: value("max.message.bytes").and_then(|bytes| bytes.parse().ok()),
            cleanup_policy: value("cleanup.policy"),
        }
    }))
}

/// Creates the topic. An existing topic stays as it is.
pub(crate) fn create_topic(
    config: &KafkaConfig,
    shape: NewTopicShape,
    by: Instant,
) -> Result<(), Failure> {
    let client = config.admin_client()?;
    let replication = TopicReplication::Fixed(i32::from(shape.replication.get()));
    let new = NewTopic::new(
        &config.topic,
        i32::from(shape.partitions.get()),
        replication,
    );
    let created = wait(client.create_topics([&new], &options(by)), by);
    let late = || Failure::retry("create", "no broker answered in time");
    let result = created.ok_or_else(late)?;
    let result = result.map_err(|error| Failure::retry("create", error.to_string()))?;
    match result.into_iter().next() {
        None | Some(Ok(_)) | Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => Ok(()),
        Some(Err((_, code))) => Err(refused(code)),
    }
}

fn refused(code: RDKafkaErrorCode) -> Failure {
    use RDKafkaErrorCode as Code;
    let impossible = matches!(
        code,
        Code::InvalidConfig | Code::InvalidPartitions | Code::PolicyViolation
    );
    // If there are too few brokers, others may just be starting.
    if impossible || error_class(code) == ErrorClass::Permanent {
        Failure::last("create", code.to_string())
    } else {
        Failure::retry("create", code.to_string())
    }
}

/// The time until `by`, zero if that is past.
pub(crate) fn time_left(by: Instant) -> Duration {
    by.saturating_duration_since(Instant::now())
}

fn options(by: Instant) -> AdminOptions {
    // librdkafka accepts a millisecond or more.
    let left = Some(time_left(by).max(Duration::from_millis(1)));
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
        let left = time_left(by);
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}
