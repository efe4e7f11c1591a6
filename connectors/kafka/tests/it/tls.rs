//! A network that nobody can read: a proxy that speaks TLS before the cluster.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkWriter as _, RetryClass};
use baler_connector_kafka::{KafkaConfig, KafkaWriter};
use baler_connector_testkit::faults::{KafkaProxy, KafkaSecurity, KafkaTls};
use baler_connector_testkit::{ChunkSource, Pump, Tap, TestMedium, drive_pair};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::support::{Kafka, TOPIC, config, soon};

/// Certificates and keys, PEM, in files that end with the test.
pub(crate) struct Pki {
    folder: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    pub(crate) fn new(name: &str) -> Self {
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

    pub(crate) fn server(&self, client_ca: bool) -> KafkaTls {
        let (certificate, key) = self.issue(ExtendedKeyUsagePurpose::ServerAuth);
        KafkaTls {
            certificate,
            key,
            client_ca: client_ca.then(|| self.authority.pem()),
        }
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn ca(&self) -> String {
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

fn over_tls(kafka: &Kafka, tls: KafkaTls) -> KafkaProxy {
    let security = KafkaSecurity {
        tls: Some(tls),
        sasl: None,
    };
    KafkaProxy::start_secure(kafka.cluster.bootstrap_servers(), &security).unwrap()
}

/// Chunks go there and back.
pub(crate) fn passes(kafka: &Kafka, config: &KafkaConfig) {
    let mut pump = Pump::open(kafka.writer_with(config.clone()));
    let mut tap = Tap::new(kafka.reader_with(config.clone()));
    pump.push(ChunkSource::new(1).take(50));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 50
    });
    tap.assert_ordered();
}

/// What a writer says that is refused for good.
pub(crate) fn refusal(config: KafkaConfig) -> String {
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
    let proxy = over_tls(&kafka, pki.server(false));
    passes(&kafka, &tls(&proxy, &pki.ca(), &[]));
    let other = Pki::new("other");
    let text = refusal(tls(&proxy, &other.ca(), &[]));
    assert!(text.contains("certificate"), "{text}");
}

#[test]
fn client_without_a_certificate_is_refused_where_one_is_demanded() {
    let kafka = Kafka::fresh();
    let pki = Pki::new("mutual");
    let proxy = over_tls(&kafka, pki.server(true));
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
    let proxy = over_tls(&kafka, pki.server(false));
    let config = KafkaConfig::new(proxy.bootstrap_servers(), TOPIC);
    let by = Instant::now() + Duration::from_secs(2);
    let error = KafkaWriter::new(config).reopen(by).unwrap_err();
    assert!(error.is_retryable(), "{error}");
}
