//! A network that stalls, resets and slows down, and one that nobody can read: a proxy before the
//! cluster.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkWriter as _, RetryClass};
use baler_connector_kafka::{KafkaConfig, KafkaWriter};
use baler_connector_testkit::{ChunkSource, Medium, Pump, Tap, drive_pair};
use baler_faults::{KafkaProxy, KafkaTls};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::support::{Kafka, TOPIC, config, soon};

/// Timeouts short enough for a connection that says nothing to be given up within the test.
const IMPATIENT: [(&str, &str); 2] = [
    ("socket.timeout.ms", "2000"),
    ("session.timeout.ms", "6000"),
];

/// Sends through the proxy while `fault` happens to it, and takes everything on the other side.
fn survives(mut fault: impl FnMut(&KafkaProxy, u32)) {
    let kafka = Kafka::with_brokers(2);
    let proxy = KafkaProxy::start(kafka.cluster.bootstrap_servers()).unwrap();
    let config = config(proxy.bootstrap_servers())
        .client_settings(&IMPATIENT)
        .unwrap();
    let mut pump = Pump::open(kafka.writer_with(config.clone()));
    let mut tap = Tap::new(kafka.reader_with(config));
    let mut source = ChunkSource::new(1);
    let mut sent = 8;
    pump.push((0..8).map(|at| source.next(at, 500)));
    // Only then: librdkafka's mock aborts the process when a member that waits for its partitions
    // comes by another connection.
    drive_pair("the group has formed", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 8
    });
    for round in 0..6 {
        let chunks: Vec<_> = (0..40).map(|at| source.next(at % 8, 500)).collect();
        sent += chunks.len();
        pump.push(chunks);
        pump.step();
        fault(&proxy, round);
        let until = Instant::now() + Duration::from_millis(100);
        drive_pair("some pass", &mut pump, &mut tap, |pump, _| {
            pump.is_done() || Instant::now() > until
        });
    }
    proxy.set_frozen(false);
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == sent
    });
    assert_eq!(pump.confirmed(), sent);
    tap.assert_ordered();
    assert!(proxy.connections() >= 4, "{}", proxy.connections());
}

#[test]
fn resets_between_frames_and_in_them_lose_nothing() {
    survives(|proxy, round| {
        if round % 2 == 0 {
            proxy.cut();
        } else {
            proxy.cut_after(3001);
        }
    });
}

#[test]
fn half_open_connections_lose_nothing() {
    survives(|proxy, round| proxy.set_frozen(round % 2 == 0));
}

#[test]
fn connections_that_stay_half_open_are_given_up() {
    let kafka = Kafka::fresh();
    let proxy = KafkaProxy::start(kafka.cluster.bootstrap_servers()).unwrap();
    let config = config(proxy.bootstrap_servers())
        .client_settings(&IMPATIENT)
        .unwrap();
    let mut pump = Pump::open(kafka.writer_with(config.clone()));
    let mut tap = Tap::new(kafka.reader_with(config));
    let mut source = ChunkSource::new(1);
    pump.push(source.take(20));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 20
    });
    let before = proxy.connections();
    proxy.set_frozen(true);
    pump.push(source.take(20));
    pump.step();
    drive_pair(
        "another connection is tried",
        &mut pump,
        &mut tap,
        |_, _| proxy.connections() > before,
    );
    proxy.set_frozen(false);
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 40
    });
    tap.assert_ordered();
}

#[test]
fn slow_network_loses_nothing() {
    survives(|proxy, round| {
        proxy.set_delay(Duration::from_millis(u64::from(round % 3) * 20));
        proxy.set_bytes_per_second((round % 2 == 0).then_some(200_000));
    });
}

/// Certificates and keys, PEM, in files that end with the test.
struct Pki {
    folder: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    fn new(name: &str) -> Self {
        let folder = format!("baler-kafka-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
        Self { folder, authority }
    }

    /// A certificate and its key.
    fn issue(&self, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        // A certificate with the name of its issuer would count as signed by itself.
        params
            .distinguished_name
            .push(DnType::CommonName, "127.0.0.1");
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn server(&self, client_ca: bool) -> KafkaTls {
        let (certificate, key) = self.issue(ExtendedKeyUsagePurpose::ServerAuth);
        KafkaTls {
            certificate,
            key,
            client_ca: client_ca.then(|| self.authority.pem()),
        }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn ca(&self) -> String {
        self.folder.join("ca.pem").to_str().unwrap().to_owned()
    }
}

impl Drop for Pki {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn tls(proxy: &KafkaProxy, ca: &str, more: &[(&str, &str)]) -> KafkaConfig {
    let mut settings = vec![("security.protocol", "ssl"), ("ssl.ca.location", ca)];
    settings.extend(more);
    config(proxy.bootstrap_servers())
        .client_settings(&settings)
        .unwrap()
}

/// Chunks go there and back.
fn passes(kafka: &Kafka, config: &KafkaConfig) {
    let mut pump = Pump::open(kafka.writer_with(config.clone()));
    let mut tap = Tap::new(kafka.reader_with(config.clone()));
    pump.push(ChunkSource::new(1).take(50));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 50
    });
    tap.assert_ordered();
}

fn refusal(config: KafkaConfig) -> String {
    let start = Instant::now();
    let error = KafkaWriter::new(config).reopen(soon()).unwrap_err();
    assert_eq!(error.class, RetryClass::Final, "{error}");
    assert!(start.elapsed() < Duration::from_secs(8), "it is told soon");
    error.to_string()
}

#[test]
fn chunks_pass_over_tls_and_another_authority_is_refused() {
    let kafka = Kafka::with_brokers(2);
    let pki = Pki::new("tls");
    let proxy = KafkaProxy::start_tls(kafka.cluster.bootstrap_servers(), &pki.server(false));
    let proxy = proxy.unwrap();
    passes(&kafka, &tls(&proxy, &pki.ca(), &[]));
    let other = Pki::new("other");
    let text = refusal(tls(&proxy, &other.ca(), &[]));
    assert!(text.contains("certificate"), "{text}");
}

#[test]
fn client_without_a_certificate_is_refused_where_one_is_demanded() {
    let kafka = Kafka::fresh();
    let pki = Pki::new("mutual");
    let proxy = KafkaProxy::start_tls(kafka.cluster.bootstrap_servers(), &pki.server(true));
    let proxy = proxy.unwrap();
    let (certificate, key) = pki.issue(ExtendedKeyUsagePurpose::ClientAuth);
    let certificate = pki.write("client.pem", &certificate);
    let key = pki.write("client.key", &key);
    let mine = [
        ("ssl.certificate.location", certificate.as_str()),
        ("ssl.key.location", key.as_str()),
    ];
    passes(&kafka, &tls(&proxy, &pki.ca(), &mine));
    let text = refusal(tls(&proxy, &pki.ca(), &[]));
    assert!(text.to_lowercase().contains("certificate"), "{text}");
}

#[test]
fn plain_text_to_a_port_of_tls_never_opens() {
    let kafka = Kafka::fresh();
    let pki = Pki::new("plain");
    let proxy = KafkaProxy::start_tls(kafka.cluster.bootstrap_servers(), &pki.server(false));
    let config = KafkaConfig::new(proxy.unwrap().bootstrap_servers(), TOPIC);
    let by = Instant::now() + Duration::from_secs(2);
    let error = KafkaWriter::new(config).reopen(by).unwrap_err();
    assert!(error.is_retryable(), "{error}");
}
