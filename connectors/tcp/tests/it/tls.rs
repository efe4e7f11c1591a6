//! TLS: the senders that are admitted, and the contract over it.

use std::time::Instant;

use baler_common::transport::{ChunkReader, ChunkWriter, Received, RetryClass};
use baler_connector_tcp::{TcpReader, TcpWriter};
use baler_connector_testkit::hostile::Guard;
use baler_connector_testkit::{
    ChunkSource, PATIENCE, Pump, Tap, TestMedium, drive_pair, within_patience,
};

use crate::support::{Secrets, Tcp, receiver, uri};

/// A receiver and its senders, each with a certificate, behind a proxy.
struct Tls {
    tcp: Tcp,
    secrets: Secrets,
}

/// Small limits, as those of [`crate::support::config`].
const LIMITS: &str = "&max_chunk=20000&window_chunks=32&window=60000&memory=100000";

impl TestMedium for Tls {
    fn fresh() -> Self {
        Self {
            tcp: Tcp::fresh(),
            secrets: Secrets::new(),
        }
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        let port = self.tcp.proxy.address().port();
        let text = self.secrets.tls(port, "authority", Some("two")) + LIMITS;
        Box::new(TcpWriter::new(uri(&text)))
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        let text = self.secrets.tls(0, "authority", Some("one")) + LIMITS;
        Box::new(self.tcp.reader_with(uri(&text)))
    }

    fn break_connections(&mut self) {
        self.tcp.break_connections();
    }

    fn stall(&mut self) {
        self.tcp.stall();
    }

    fn resume(&mut self) {
        self.tcp.resume();
    }
}

mod contract {
    baler_connector_testkit::contract_tests!(super::Tls: reads redelivers breaks stalls many_writers);
}

#[test]
fn peers_are_admitted_by_their_certificates() {
    let secrets = Secrets::new();
    let mutual = secrets.tls(0, "authority", Some("one"));
    let own = |uri: &str| {
        let (before, after) = uri.split_once("cacertfile=").unwrap();
        let (_, own) = after.split_once('&').unwrap();
        format!("{before}{own}")
    };
    let one_way = own(&mutual);
    let sender = |authority, certificate| secrets.tls(0, authority, certificate);
    let wrong_name = sender("authority", Some("two")).replace("127.0.0.1", "localhost");
    // The receiver, the sender, the error of the sender, and the error of the receiver.
    let table = [
        (&mutual, sender("authority", Some("two")), None),
        (&one_way, sender("authority", None), None),
        (&one_way, sender("authority", Some("third")), None),
        (
            &one_way,
            sender("stranger", None),
            Some(("UnknownIssuer", "TLS handshake")),
        ),
        (
            &one_way,
            "tcp://127.0.0.1:0?heartbeat=5s".to_owned(),
            Some(("write tcp+tls:", "TLS handshake")),
        ),
        (
            &mutual,
            sender("authority", None),
            Some(("CertificateRequired", "TLS handshake")),
        ),
        (
            &mutual,
            sender("authority", Some("third")),
            Some(("TLS handshake", "UnknownIssuer")),
        ),
        (
            &one_way,
            wrong_name,
            Some(("not valid for", "TLS handshake")),
        ),
    ];
    for (ours, theirs, refusal) in table {
        let mut reader = receiver(uri(ours));
        let (port, counts) = (reader.local_addr().port(), reader.stats_handle());
        let config = || uri(&theirs.replacen(":0?", &format!(":{port}?"), 1));
        let Some((told, said)) = refusal else {
            let mut pump = Pump::open(Box::new(TcpWriter::new(config())));
            let mut tap = Tap::new(Box::new(reader));
            pump.push(ChunkSource::new(1).take(5));
            drive_pair("chunks arrive", &mut pump, &mut tap, |pump, tap| {
                pump.is_done() && tap.distinct() == 5
            });
            assert_eq!(counts().connections_refused, 0);
            continue;
        };
        let mut writer = TcpWriter::new(config());
        let error = writer.reopen(Instant::now() + PATIENCE).unwrap_err();
        assert_eq!(error.class, RetryClass::Final, "{error}");
        assert!(error.to_string().contains(told), "{error}, not {told}");
        match reader.receive(Instant::now() + PATIENCE).unwrap() {
            Received::Damaged(damaged) => {
                assert!(damaged.reason.contains(said), "{}", damaged.reason);
            }
            other => panic!("a refused peer is named, not {other:?}"),
        }
        assert_eq!(counts().connections_refused, 1);
        assert_eq!(counts().connections, 0);
    }
}

#[test]
fn a_producer_belongs_to_the_certificate_that_sends_it() {
    let secrets = Secrets::new();
    let reader = receiver(secrets.config(Guard::Tls, 0));
    let port = reader.local_addr().port();
    let mut tap = Tap::new(Box::new(reader));
    let mut source = ChunkSource::new(1);
    let mut open = |name| {
        let config = uri(&secrets.tls(port, "authority", Some(name)));
        let mut writer = TcpWriter::new(config);
        writer.reopen(Instant::now() + PATIENCE).unwrap();
        writer.offer(source.next(0, 100)).unwrap();
        writer
    };
    // Two connections with one certificate may share a producer: two relays may both forward it.
    for (name, is_let_in) in [("one", true), ("one", true), ("two", false)].into_iter() {
        let before = tap.distinct();
        let mut writer = open(name);
        if is_let_in {
            within_patience("the chunk arrives", || {
                tap.poll(std::time::Duration::from_millis(5));
                (tap.distinct() == before + 1).then_some(())
            });
            // The connection stays open, and keeps its claims.
            std::mem::forget(writer);
            continue;
        }
        let error = within_patience("it is refused", || {
            writer.delivery_reports(&mut Vec::new()).err()
        });
        assert!(error.is_retryable());
        assert!(error.to_string().contains("refuses a chunk"), "{error}");
        assert_eq!(tap.distinct(), before);
    }
}

#[test]
fn files_that_cannot_be_used_are_named_at_the_start() {
    let secrets = Secrets::new();
    let error_of_reader = |text: &str| TcpReader::bind(uri(text)).unwrap_err();
    let error_of_writer = |text: &str| {
        let mut writer = TcpWriter::new(uri(text));
        writer.reopen(Instant::now() + PATIENCE).unwrap_err()
    };
    let listening = receiver(secrets.config(Guard::None, 0));
    let plain = format!("tcp+tls://127.0.0.1:{}", listening.local_addr().port());
    let missing = secrets.tls(0, "authority", Some("nobody"));
    let swapped = missing
        .replace("nobody.key", "one.pem")
        .replace("nobody", "one");
    for (error, reason) in [
        (error_of_reader("tcp+tls://127.0.0.1:0"), "certfile"),
        (error_of_reader(&missing), "nobody.pem"),
        (error_of_reader(&swapped), "keyfile"),
        (error_of_writer(&plain), "cacertfile"),
    ] {
        assert_eq!(error.class, RetryClass::Final, "{error}");
        assert!(error.to_string().contains(reason), "{error}, not {reason}");
    }
}
