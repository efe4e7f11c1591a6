//! librdkafka's settings: those of the user, and what this connector sets where the user is silent.

use std::collections::BTreeMap;

use baler_common::transport::Failure;
use baler_common::transport::uri::UriError;
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use crate::browser::Browse;
use crate::config::KafkaConfig;
use crate::error::KafkaConfigError;
use crate::secrets::{self, FILES, TOKEN_FILE};
use crate::token::TokenSource;

/// What both ends set where the user is silent.
const BOTH: &[(&str, &str)] = &[
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

const PRODUCER: &[(&str, &str)] = &[
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

const CONSUMER: &[(&str, &str)] = &[
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

/// Names of the same setting; librdkafka takes all of them.
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

/// The connector's own settings, and those of librdkafka that are often set and not named above: of
/// an unknown one the nearest is proposed.
const KNOWN: &[&str] = &[
    "batch.num.messages",
    "batch.size",
    "compression.level",
    "create_topic",
    "debug",
    "enable.partition.eof",
    "fetch.min.bytes",
    "fetch.wait.max.ms",
    "group.instance.id",
    "isolation.level",
    "max.poll.interval.ms",
    "message.max.bytes",
    "partition.assignment.strategy",
    "partition_by",
    "receive.message.max.bytes",
    "retry.backoff.ms",
    "revoke_timeout",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "window",
    "window_chunks",
];

/// The names of settings, as far as this file has them.
fn known() -> impl Iterator<Item = &'static str> {
    let set = [BOTH, PRODUCER, CONSUMER].into_iter().flatten();
    let files = FILES.iter().map(|(file, _)| *file);
    set.map(|(name, _)| *name)
        .chain(ALIASES.iter().copied().flatten().copied())
        .chain(KNOWN.iter().copied())
        .chain(files)
        .chain([TOKEN_FILE])
}

/// What this connector decides, and by what.
const DECIDED: &[(&str, &str, &str)] = &[
    (
        "bootstrap.servers",
        "the hosts of the URI",
        "name the brokers there",
    ),
    (
        "metadata.broker.list",
        "the hosts of the URI",
        "name the brokers there",
    ),
    (
        "enable.auto.commit",
        "settle",
        "what is settled, and nothing else, is committed",
    ),
    (
        "enable.auto.offset.store",
        "settle",
        "what is settled, and nothing else, is committed",
    ),
    (
        "enable.partition.eof",
        "the reader",
        "it has to know when it is at the end of its partitions",
    ),
    (
        "queue.buffering.max.kbytes",
        "window",
        "the window bounds the client's queue",
    ),
    (
        "queue.buffering.max.messages",
        "window_chunks",
        "the window bounds the client's queue",
    ),
    (
        "transactional.id",
        "confirmations",
        "a chunk is confirmed by its delivery, there are no transactions",
    ),
];

/// Checks that settings contradict neither each other nor what this connector decides.
/// `user`: whether the URI names one.
pub(crate) fn check(given: &[(Box<str>, Box<str>)], user: User) -> Result<(), KafkaConfigError> {
    let value = |name: &str| {
        let found = given.iter().find(|(given, _)| **given == *name);
        found.map(|(_, value)| &**value)
    };
    for (name, decided_by, why) in DECIDED {
        if value(name).is_some() {
            return Err(KafkaConfigError::conflict(*name, *decided_by, why));
        }
    }
    for aliases in ALIASES {
        let mut found = aliases.iter().filter(|name| value(name).is_some());
        if let (Some(first), Some(second)) = (found.next(), found.next()) {
            let why = "they are two names of one setting";
            return Err(KafkaConfigError::conflict(*first, *second, why));
        }
    }
    let acks = ["acks", "request.required.acks"]
        .into_iter()
        .find_map(|name| Some((name, value(name)?)));
    if let Some((name, acks)) = acks
        && !matches!(acks, "all" | "-1")
        && value("enable.idempotence").is_none_or(|value| value == "true")
    {
        return Err(KafkaConfigError::conflict(
            format!("{name}={acks}"),
            "enable.idempotence=true",
            "a producer is idempotent only if all replicas acknowledge; turn it off to have fewer",
        ));
    }
    for (file, direct) in FILES {
        if value(file).is_some() && value(direct).is_some() {
            let why = "one of them holds the secret";
            return Err(KafkaConfigError::conflict(*file, *direct, why));
        }
    }
    check_token(value)?;
    check_tls(value)?;
    if user == User::WithPassword && value("sasl.password.file").is_some() {
        return Err(KafkaConfigError::conflict(
            "the password of the URI",
            "sasl.password.file",
            "one of them holds the secret",
        ));
    }
    if user != User::None {
        if value("sasl.username").is_some() {
            let why = "there can be one of them";
            return Err(KafkaConfigError::conflict(
                "the user of the URI",
                "sasl.username",
                why,
            ));
        }
        let protocol = value("security.protocol").unwrap_or("plaintext");
        if !protocol.to_ascii_lowercase().starts_with("sasl_") {
            return Err(KafkaConfigError::conflict(
                "the user of the URI",
                format!("security.protocol={protocol}"),
                "a user is told to sasl_ssl or sasl_plaintext only",
            ));
        }
    }
    Ok(())
}

/// Whether a URI names a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    None,
    WithoutPassword,
    WithPassword,
}

/// Checks that this build has what TLS and SASL need: librdkafka leaves both to OpenSSL.
fn check_tls<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Result<(), KafkaConfigError> {
    if cfg!(feature = "tls") {
        return Ok(());
    }
    let needs = |name: &'static str, is_met: fn(&str) -> bool| {
        let value = value(name).filter(|value| !is_met(&value.to_ascii_lowercase()))?;
        Some(format!("{name}={value}"))
    };
    let setting = needs("security.protocol", |protocol| !protocol.ends_with("ssl"))
        .or_else(|| needs("sasl.mechanism", |mechanism| mechanism == "plain"))
        .or_else(|| needs("sasl.mechanisms", |mechanism| mechanism == "plain"));
    setting.map_or(Ok(()), |setting| {
        Err(KafkaConfigError::Setting {
            name: setting.into(),
            message: "this build has no TLS for Kafka; build the program with \
                      --features kafka-tls, or the crate baler-connector-kafka with the feature tls"
                .into(),
        })
    })
}

/// Checks where tokens of OAUTHBEARER come from.
fn check_token<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Result<(), KafkaConfigError> {
    const MECHANISM: &str = "sasl.mechanism=OAUTHBEARER";
    let unsecured = value("enable.sasl.oauthbearer.unsecure.jwt") == Some("true");
    if value("sasl.oauthbearer.method").is_some_and(|method| method.eq_ignore_ascii_case("oidc")) {
        return Err(KafkaConfigError::conflict(
            "sasl.oauthbearer.method=oidc",
            "this build",
            "fetching tokens needs libcurl, which is not built in; have another process write \
             the token to the file that sasl.oauthbearer.token.file names",
        ));
    }
    if unsecured && value(TOKEN_FILE).is_some() {
        return Err(KafkaConfigError::conflict(
            "enable.sasl.oauthbearer.unsecure.jwt",
            TOKEN_FILE,
            "a token is from one of them",
        ));
    }
    let mechanism = value("sasl.mechanism").or_else(|| value("sasl.mechanisms"));
    let bearer = mechanism.is_some_and(|name| name.eq_ignore_ascii_case("OAUTHBEARER"));
    match (bearer, value(TOKEN_FILE)) {
        (true, None) if !unsecured => Err(KafkaConfigError::conflict(
            MECHANISM,
            "no sasl.oauthbearer.token.file",
            "a token is from that file, or unsecured by enable.sasl.oauthbearer.unsecure.jwt=true",
        )),
        (false, Some(_)) => Err(KafkaConfigError::conflict(
            TOKEN_FILE,
            mechanism.map_or_else(
                || "no sasl.mechanism".to_owned(),
                |name| format!("sasl.mechanism={name}"),
            ),
            "tokens are for sasl.mechanism=OAUTHBEARER",
        )),
        _ => Ok(()),
    }
}

/// What the user sets.
#[derive(Clone)]
pub(crate) struct ClientSettings(BTreeMap<Box<str>, Box<str>>);

impl ClientSettings {
    pub(crate) fn new(bootstrap_servers: &str) -> Self {
        Self(BTreeMap::from([(
            "bootstrap.servers".into(),
            bootstrap_servers.into(),
        )]))
    }

    pub(crate) fn set(&mut self, name: &str, value: Box<str>) {
        self.0.insert(name.into(), value);
    }

    /// Has librdkafka look at every setting.
    pub(crate) fn try_out(&self) -> Result<(), KafkaConfigError> {
        let mut config = ClientConfig::new();
        for (name, value) in self.of_the_client() {
            config.set(name, value);
        }
        match config.create_native_config() {
            Ok(_) => Ok(()),
            Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, _, name, _)) => {
                Err(UriError::unknown(name, known()).into())
            }
            Err(KafkaError::ClientConfig(_, message, name, value)) => {
                let secret = name.contains("password") || name.contains("secret");
                let message = if secret && !value.is_empty() {
                    message.replace(&value, "***")
                } else {
                    message
                };
                Err(KafkaConfigError::Setting {
                    message: message.into(),
                    name: name.into(),
                })
            }
            Err(error) => Err(KafkaConfigError::Setting {
                name: "a setting".into(),
                message: error.to_string().into(),
            }),
        }
    }

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
            // OpenSSL is built in and does not know where the system keeps certificates.
            config.set("ssl.ca.location", "probe");
        }
        for (name, value) in self.of_the_client() {
            config.set(name, value);
        }
        for (file, direct) in FILES {
            if let Some(path) = self.value(file) {
                config.set(*direct, secrets::read(file, path)?);
            }
        }
        Ok(config)
    }

    /// What librdkafka knows of.
    fn of_the_client(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter().map(|(name, value)| (&**name, &**value));
        all.filter(|(name, _)| !secrets::is_own(name))
    }

    /// Where tokens of OAUTHBEARER come from.
    pub(crate) fn tokens(&self) -> TokenSource {
        TokenSource {
            file: self.value(TOKEN_FILE).map(Into::into),
        }
    }

    /// The value of a setting, whichever of its names it is given by.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let aliases = ALIASES.iter().find(|aliases| aliases.contains(&name));
        let mut names = aliases.copied().unwrap_or_default().iter().copied();
        let direct = self.0.get(name);
        let value = direct.or_else(|| names.find_map(|alias| self.0.get(alias)));
        value.map(|value| &**value)
    }
}

impl KafkaConfig {
    /// A producer's settings. `alone`: each message in a batch of its own.
    pub(crate) fn producer(&self, alone: bool) -> Result<ClientConfig, Failure> {
        let mut config = self.client.over(&[BOTH, PRODUCER])?;
        // The writer keeps to its window; the client's bounds are twice as wide because it counts
        // a message until after its delivery was reported.
        let bytes = self.window.bytes.max(self.max_message_bytes).get();
        config.set("queue.buffering.max.kbytes", (bytes / 512 + 1).to_string());
        let chunks = self.window.chunks.get().saturating_mul(2).min(10_000_000);
        config.set("queue.buffering.max.messages", chunks.to_string());
        config.set("message.max.bytes", self.max_message_bytes.to_string());
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
        config.set("message.max.bytes", self.max_message_bytes.to_string());
        Ok(config)
    }

    /// The settings of a client that looks at the topic. Its `group.id` has no effect beyond what the
    /// client needs one for: it never subscribes, and who does not subscribe joins no group.
    pub(crate) fn browser(&self, browse: Browse) -> Result<ClientConfig, Failure> {
        let mut config = self.client.over(&[BOTH, CONSUMER])?;
        config.set("message.max.bytes", self.max_message_bytes.to_string());
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
