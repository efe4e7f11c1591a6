//! librdkafka's settings: those of the user, checked against each other and by librdkafka.

use std::collections::BTreeMap;

use baler_common::transport::uri::UriError;
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use crate::client::{self, BOTH, CONSUMER, FILES, PRODUCER, TOKEN_FILE};
use crate::error::KafkaConfigError;

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
const KNOWN: &str = "batch.num.messages batch.size compression.level create_topic debug \
    enable.partition.eof fetch.min.bytes fetch.wait.max.ms group.instance.id isolation.level \
    max.poll.interval.ms message.max.bytes partition.assignment.strategy partition_by \
    receive.message.max.bytes retry.backoff.ms revoke_timeout sasl.password sasl.username \
    security.protocol ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.key.location \
    ssl.key.password window window_chunks";

const WINDOW: &str = "the window bounds the client's queue";
const SETTLE: &str = "what is settled, and nothing else, is committed";
const HOSTS: &str = "name the brokers there";

/// What this connector decides: the setting, by what, and why.
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

/// The value of a setting in lower case, by whichever of these names.
fn lower(settings: &Settings, names: &[&str]) -> String {
    let found = names.iter().find_map(|name| value(settings, name));
    found.unwrap_or_default().to_ascii_lowercase()
}

/// Checks that settings contradict neither each other nor what this connector decides.
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
    // librdkafka leaves TLS, and all of SASL but PLAIN, to OpenSSL.
    let protocol = lower(given, &["security.protocol"]);
    let needs_tls = if protocol.ends_with("ssl") {
        format!("security.protocol={protocol}")
    } else if !matches!(&*mechanism, "" | "plain") {
        format!("sasl.mechanism={mechanism}")
    } else {
        return Ok(());
    };
    Err(KafkaConfigError::Setting {
        name: needs_tls.into(),
        message:
            "this build has no TLS for Kafka; build the program with --features kafka-tls, or \
                  the crate baler-connector-kafka with the feature tls"
                .into(),
    })
}

/// Checks that the URI may have this part of the credentials beside these settings.
pub(super) fn check_user(name: &str, settings: &Settings) -> Result<(), KafkaConfigError> {
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

/// What the user sets.
#[derive(Clone)]
pub(crate) struct ClientSettings(BTreeMap<Box<str>, Box<str>>);

impl ClientSettings {
    pub(crate) fn new(bootstrap_servers: &str) -> Self {
        let servers = ("bootstrap.servers".into(), bootstrap_servers.into());
        Self(BTreeMap::from([servers]))
    }

    /// Adds settings, once they and librdkafka agree.
    pub(super) fn set_all(
        &mut self,
        settings: Vec<(Box<str>, Box<str>)>,
    ) -> Result<(), KafkaConfigError> {
        check(&settings)?;
        self.0.extend(settings);
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
        Err(KafkaConfigError::Setting {
            name: name.into(),
            message: message.into(),
        })
    }

    /// The settings that librdkafka knows.
    pub(crate) fn of_the_client(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter().map(|(name, value)| (&**name, &**value));
        all.filter(|(name, _)| !client::is_own(name))
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
