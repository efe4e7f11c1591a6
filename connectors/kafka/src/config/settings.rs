//! librdkafka's settings: those of the user, and what this connector sets where the user is silent.

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

/// The names of settings, as far as this crate has them.
fn known() -> impl Iterator<Item = &'static str> {
    let set = [BOTH, PRODUCER, CONSUMER].into_iter().flatten();
    let files = FILES.iter().map(|(file, _)| *file);
    set.map(|(name, _)| *name)
        .chain(ALIASES.iter().copied().flatten().copied())
        .chain(KNOWN.split_whitespace())
        .chain(files)
        .chain([TOKEN_FILE])
}

/// What this connector decides: the settings, by what, and why.
const DECIDED: &[(&[&str], &str, &str)] = &[
    (
        &["bootstrap.servers", "metadata.broker.list"],
        "the hosts of the URI",
        "name the brokers there",
    ),
    (
        &["enable.auto.commit", "enable.auto.offset.store"],
        "settle",
        "what is settled, and nothing else, is committed",
    ),
    (
        &["enable.partition.eof"],
        "the reader",
        "it has to know when it is at the end of its partitions",
    ),
    (&["queue.buffering.max.kbytes"], "window", WINDOW),
    (&["queue.buffering.max.messages"], "window_chunks", WINDOW),
    (
        &["transactional.id"],
        "confirmations",
        "a chunk is confirmed by its delivery, there are no transactions",
    ),
];

const WINDOW: &str = "the window bounds the client's queue";

const UNSECURED: &str = "enable.sasl.oauthbearer.unsecure.jwt";

/// Checks that settings contradict neither each other nor what this connector decides.
pub(crate) fn check(given: &[(Box<str>, Box<str>)]) -> Result<(), KafkaConfigError> {
    let value = |name: &str| {
        let found = given.iter().find(|(given, _)| **given == *name);
        found.map(|(_, value)| &**value)
    };
    let conflict =
        |first: &str, second: &str, why| Err(KafkaConfigError::conflict(first, second, why));
    for (names, decided_by, why) in DECIDED {
        if let Some(name) = names.iter().find(|name| value(name).is_some()) {
            return conflict(name, decided_by, why);
        }
    }
    let aliases = ALIASES
        .iter()
        .map(|it| (*it, "they are two names of one setting"));
    let files = FILES.map(|(file, direct)| [file, direct]);
    let secrets = files
        .iter()
        .map(|it| (it.as_slice(), "one of them holds the secret"));
    let tokens = [(
        [UNSECURED, TOKEN_FILE].as_slice(),
        "a token is from one of them",
    )];
    for (names, why) in aliases.chain(secrets).chain(tokens) {
        let mut found = names.iter().filter(|name| value(name).is_some());
        if let (Some(first), Some(second)) = (found.next(), found.next()) {
            return conflict(first, second, why);
        }
    }
    let named = |names: &[&'static str]| {
        let mut names = names.iter();
        names.find_map(|name| Some((*name, value(name)?)))
    };
    if let Some((name, acks)) = named(&["acks", "request.required.acks"])
        && !matches!(acks, "all" | "-1")
        && value("enable.idempotence").is_none_or(|value| value == "true")
    {
        let why = "a producer is idempotent only if all replicas acknowledge; turn it off to have \
                   fewer";
        return conflict(&format!("{name}={acks}"), "enable.idempotence=true", why);
    }
    if value("sasl.oauthbearer.method").is_some_and(|method| method.eq_ignore_ascii_case("oidc")) {
        let why = "fetching tokens needs libcurl, which is not built in; have another process write \
                   the token to the file that sasl.oauthbearer.token.file names";
        return conflict("sasl.oauthbearer.method=oidc", "this build", why);
    }
    let mechanism = named(&["sasl.mechanism", "sasl.mechanisms"]);
    let bearer = mechanism.is_some_and(|(_, it)| it.eq_ignore_ascii_case("OAUTHBEARER"));
    match (bearer, value(TOKEN_FILE)) {
        (true, None) if value(UNSECURED) != Some("true") => {
            let why = "a token is from that file, or unsecured by \
                       enable.sasl.oauthbearer.unsecure.jwt=true";
            let second = "no sasl.oauthbearer.token.file";
            return conflict("sasl.mechanism=OAUTHBEARER", second, why);
        }
        (false, Some(_)) => {
            let mechanism = mechanism.map_or("none", |(_, mechanism)| mechanism);
            let why = "tokens are for sasl.mechanism=OAUTHBEARER";
            return conflict(TOKEN_FILE, &format!("sasl.mechanism={mechanism}"), why);
        }
        _ => {}
    }
    check_tls(named(&["security.protocol"]), mechanism)
}

/// A setting: its name and its value.
type Setting<'a> = Option<(&'static str, &'a str)>;

/// Checks that this build has what TLS and SASL need: librdkafka leaves both to OpenSSL.
fn check_tls(protocol: Setting<'_>, mechanism: Setting<'_>) -> Result<(), KafkaConfigError> {
    if cfg!(feature = "tls") {
        return Ok(());
    }
    let protocol = protocol.filter(|(_, it)| it.to_ascii_lowercase().ends_with("ssl"));
    let mechanism = mechanism.filter(|(_, it)| !it.eq_ignore_ascii_case("plain"));
    match protocol.or(mechanism) {
        None => Ok(()),
        Some((name, value)) => Err(KafkaConfigError::Setting {
            name: format!("{name}={value}").into(),
            message: "this build has no TLS for Kafka; build the program with \
                      --features kafka-tls, or the crate baler-connector-kafka with the feature tls"
                .into(),
        }),
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

    /// What librdkafka knows of.
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
