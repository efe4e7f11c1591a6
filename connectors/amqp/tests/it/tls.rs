//! amqps against a node that demands it.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, ChunkWriter, RetryClass, TransportError};
use baler_connector_testkit::faults::RabbitMqNode;
use baler_connector_testkit::{PATIENCE, within_patience};
use tempfile::TempDir;

use crate::support::{reader, writer};
use crate::traffic::Traffic;

/// Certificates that live as long as this value: two authorities, a server's of the first one for
/// the address 127.0.0.1, a client's of the first one.
struct Certificates(TempDir);

impl Certificates {
    fn new() -> Self {
        let certificates = Self(TempDir::new().unwrap());
        for authority in ["ca", "other"] {
            certificates.openssl(&format!(
                "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={authority} \
                 -keyout {authority}.key -out {authority}.pem \
                 -addext basicConstraints=critical,CA:TRUE"
            ));
        }
        for (name, extension) in [
            ("server", "subjectAltName=IP:127.0.0.1"),
            ("client", "extendedKeyUsage=clientAuth"),
        ] {
            certificates.openssl(&format!(
                "req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
            ));
            fs::write(certificates.path("extension"), extension).unwrap();
            certificates.openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
                 -extfile extension -out {name}.pem"
            ));
        }
        certificates
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command.args(arguments.split_whitespace());
        let output = command.current_dir(self.0.path()).output();
        let output = output.expect("openssl can be run");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments}: {complaint}");
    }

    fn path(&self, name: &str) -> String {
        path(self.0.path(), name)
    }
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// A node that takes connections with this version of TLS, and where.
fn node(
    certificates: &Certificates,
    version: &str,
    demands_client: bool,
) -> (RabbitMqNode, String) {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = bound.local_addr().unwrap().port();
    drop(bound);
    let verify = if demands_client {
        "verify_peer"
    } else {
        "verify_none"
    };
    let node = RabbitMqNode::prepare_with(&format!(
        "listeners.ssl.1 = 127.0.0.1:{port}\n\
         ssl_options.cacertfile = {}\n\
         ssl_options.certfile = {}\n\
         ssl_options.keyfile = {}\n\
         ssl_options.versions.1 = {version}\n\
         ssl_options.verify = {verify}\n\
         ssl_options.fail_if_no_peer_cert = {demands_client}\n",
        certificates.path("ca.pem"),
        certificates.path("server.pem"),
        certificates.path("server.key"),
    ))
    .unwrap();
    node.restart().unwrap();
    // It takes TLS connections a moment later than others.
    within_patience("it listens", || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
    });
    (
        node,
        format!("amqps://127.0.0.1:{port}?queue=q&single_active=yes"),
    )
}

/// A writer and a reader learn for this reason that they cannot connect. The broker's alert over a
/// certificate that is missing follows the handshake, and the end of the connection can overtake it:
/// then they try again first.
fn assert_final(uri: &str, reason: &str) {
    let is_final = |error: TransportError| {
        let is_final = error.class == RetryClass::Final;
        assert!(
            !is_final || error.message.contains(reason),
            "{error}, not {reason}"
        );
        is_final.then_some(())
    };
    let mut writer = writer(uri);
    within_patience("the writer fails for good", || {
        is_final(writer.reopen(Instant::now() + PATIENCE).unwrap_err())
    });
    let mut reader = reader(uri);
    within_patience("the reader fails for good", || {
        let received = reader.receive(Instant::now() + Duration::from_secs(1));
        received.err().and_then(is_final)
    });
}

#[test]
fn broker_is_trusted_by_its_authority_alone() {
    let certificates = Certificates::new();
    let (node, uri) = node(&certificates, "tlsv1.2", false);
    let trusting = |authority: &str| format!("{uri}&cacertfile={}", certificates.path(authority));
    assert_final(&trusting("other.pem"), "UnknownIssuer");
    // The machine's own authorities do not know it either.
    assert_final(&uri, "UnknownIssuer");
    assert_final(&trusting("missing.pem"), "missing.pem");
    let elsewhere = trusting("ca.pem").replace("127.0.0.1", "localhost");
    assert_final(&elsewhere, "not valid for name \"localhost\"");

    let mut traffic = Traffic::new(&trusting("ca.pem"));
    traffic.confirm(200);
    // Over TLS as well, what was confirmed survives a lost connection.
    node.close_connections().unwrap();
    traffic.until("it connects again", |traffic| traffic.broken() >= 1);
    traffic.confirm(200);
    traffic.end();
}

#[test]
fn broker_that_demands_a_certificate_gets_it() {
    let certificates = Certificates::new();
    let (_node, uri) = node(&certificates, "tlsv1.3", true);
    let uri = format!("{uri}&cacertfile={}", certificates.path("ca.pem"));
    assert_final(&uri, "CertificateRequired");
    let file = |name| certificates.path(name);
    let with = |key| {
        format!(
            "{uri}&certfile={}&keyfile={}",
            file("client.pem"),
            file(key)
        )
    };
    // The same key in the form that OpenSSL wrote before version 3.
    certificates.openssl("rsa -traditional -in client.key -out traditional.key");
    for key in ["client.key", "traditional.key"] {
        let mut traffic = Traffic::new(&with(key));
        traffic.confirm(200);
        traffic.end();
    }
}
