//! Brokers that ask who connects: a proxy that has clients authenticate before the cluster.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use baler_common::transport::uri::Uri;
use baler_common::transport::{ChunkReader, ChunkWriter as _, RetryClass};
use baler_connector_kafka::{KafkaConfig, KafkaReader, KafkaWriter};
use baler_connector_testkit::faults::{KafkaProxy, KafkaSasl, KafkaSecurity};
use baler_connector_testkit::{ChunkSource, Pump, TestMedium, within_patience};

use crate::support::{Kafka, TOPIC, limited};
use crate::tls::{Pki, passes, refusal};

const USER: &str = "shipper";
const PASSWORD: &str = "open-sesame-4711";
const WRONG: &str = "close-sesame-0815";

fn before(kafka: &Kafka, sasl: &KafkaSasl) -> KafkaProxy {
    let security = KafkaSecurity {
        tls: None,
        sasl: Some(sasl.clone()),
    };
    KafkaProxy::start_secure(kafka.cluster.bootstrap_servers(), &security).unwrap()
}

/// Knows [`USER`] by [`PASSWORD`].
fn sasl() -> KafkaSasl {
    let sasl = KafkaSasl::default();
    sasl.set_password(USER, PASSWORD);
    sasl
}

fn uri(proxy: &KafkaProxy, who: &str, mechanism: &str, more: &str) -> KafkaConfig {
    let servers = proxy.bootstrap_servers();
    let uri = format!(
        "kafka://{who}@{servers}/{TOPIC}?security.protocol=sasl_plaintext\
         &sasl.mechanism={mechanism}&session.timeout.ms=6000{more}"
    );
    limited(KafkaConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap())
}

fn secret_is_not_in(text: &str) {
    for secret in [PASSWORD, WRONG] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn chunks_pass_over_plain() {
    let kafka = Kafka::with_brokers(2);
    let sasl = sasl();
    let proxy = before(&kafka, &sasl);
    let who = format!("{USER}:{PASSWORD}");
    let config = uri(&proxy, &who, "PLAIN", "");
    passes(&kafka, &config);
    assert!(sasl.admitted() > 0);
    assert_eq!(sasl.refused(), 0);
    secret_is_not_in(&format!("{config} {config:?} {sasl:?} {proxy:?}"));
}

#[test]
fn chunks_pass_over_plain_in_tls_with_a_password_from_a_file() {
    let kafka = Kafka::fresh();
    let pki = Pki::new("sasl");
    let sasl = sasl();
    let security = KafkaSecurity {
        tls: Some(pki.server(false)),
        sasl: Some(sasl.clone()),
    };
    let servers = kafka.cluster.bootstrap_servers();
    let proxy = KafkaProxy::start_secure(servers, &security).unwrap();
    let password = pki.write("password", &format!("{PASSWORD}\n"));
    let ca = pki.ca();
    let settings = [
        ("security.protocol", "sasl_ssl"),
        ("ssl.ca.location", ca.as_str()),
        ("sasl.mechanism", "PLAIN"),
        ("sasl.username", USER),
        ("sasl.password.file", password.as_str()),
        ("session.timeout.ms", "6000"),
    ];
    let config = KafkaConfig::new(proxy.bootstrap_servers(), TOPIC);
    passes(&kafka, &limited(config.client_settings(&settings).unwrap()));
    assert!(sasl.admitted() > 0);
}

/// Why a reader gets nothing, for good.
fn refusal_of_a_reader(config: KafkaConfig) -> String {
    let mut reader: Box<dyn ChunkReader> = Box::new(KafkaReader::open(config).unwrap());
    reader.set_demand(8);
    let error = within_patience("it is told", || {
        reader
            .receive(Instant::now() + Duration::from_millis(50))
            .err()
    });
    assert_eq!(error.class, RetryClass::Final, "{error}");
    format!("{error} {error:?}")
}

#[test]
fn wrong_password_and_unknown_user_are_final_and_the_password_is_not_shown() {
    Collected::install();
    let kafka = Kafka::fresh();
    let sasl = sasl();
    let proxy = before(&kafka, &sasl);
    for who in [format!("{USER}:{WRONG}"), format!("nobody:{PASSWORD}")] {
        // With all that librdkafka can say.
        let config = uri(&proxy, &who, "PLAIN", "&debug=all");
        let shown = refusal(config.clone()) + &refusal_of_a_reader(config);
        assert!(shown.contains("Invalid username or password"), "{shown}");
        secret_is_not_in(&shown);
    }
    assert!(sasl.refused() >= 4, "{}", sasl.refused());
    assert_eq!(sasl.admitted(), 0);
    let logs = Collected::text();
    assert!(logs.contains("SASL"), "librdkafka said nothing: {logs}");
    secret_is_not_in(&logs);
}

#[test]
fn mechanism_that_brokers_do_not_know_is_final_and_theirs_are_named() {
    let kafka = Kafka::fresh();
    let proxy = before(&kafka, &sasl());
    let who = format!("{USER}:{PASSWORD}");
    let config = uri(&proxy, &who, "SCRAM-SHA-256", "");
    let told = refusal(config.clone()) + &refusal_of_a_reader(config);
    assert!(
        told.contains("SCRAM-SHA-256") && told.contains("PLAIN"),
        "{told}"
    );
    secret_is_not_in(&told);
}

#[test]
fn writer_takes_up_a_password_that_was_changed() {
    let kafka = Kafka::fresh();
    let files = Pki::new("changed");
    let sasl = sasl();
    let proxy = before(&kafka, &sasl);
    let file = files.write("password", PASSWORD);
    let more = format!("&sasl.password.file={file}");
    let config = uri(&proxy, USER, "PLAIN", &more);
    let mut pump = Pump::open(kafka.writer_with(config));
    let mut source = ChunkSource::new(1);
    let mut confirms = |pump: &mut Pump, chunks| {
        pump.push(source.take(8));
        within_patience("it is confirmed", || {
            pump.step();
            (pump.confirmed() == chunks).then_some(())
        });
    };
    confirms(&mut pump, 8);
    sasl.set_password(USER, WRONG);
    files.write("password", WRONG);
    proxy.cut();
    let start = Instant::now();
    confirms(&mut pump, 16);
    // By far before a chunk is too old, which would break the writer as well.
    let took = start.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert!(pump.breaks() >= 1 && sasl.refused() >= 1);
}

#[test]
fn client_that_does_not_authenticate_never_opens() {
    let kafka = Kafka::fresh();
    let proxy = before(&kafka, &sasl());
    let config = KafkaConfig::new(proxy.bootstrap_servers(), TOPIC);
    let by = Instant::now() + Duration::from_secs(2);
    let error = KafkaWriter::new(config).reopen(by).unwrap_err();
    assert!(error.is_retryable(), "{error}");
}

/// What was logged in this process.
struct Collected;

static LOGS: Mutex<String> = Mutex::new(String::new());

impl Collected {
    fn install() {
        log::set_logger(&Self).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    }

    fn text() -> String {
        LOGS.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl log::Log for Collected {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(logs, "{}", record.args()).unwrap();
    }

    fn flush(&self) {}
}
