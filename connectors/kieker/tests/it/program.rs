//! The writer's end of the adaptive protocol, before a bridge and before peers whose every byte the
//! test decides.

use std::io::Read as _;
use std::net::TcpListener;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baler_common::transport::{ChunkWriter as _, Probes, RetryClass, TransportError};
use baler_connector_kieker::adaptive::wire::{
    Command, From, Hello, Version, feature, push_batch, push_bye, push_hello, push_ping,
    push_snapshot, push_update,
};
use baler_connector_kieker::adaptive::{Bridge, ErrorCode};
use baler_connector_kieker::{KiekerTcpWriter, KiekerTcpWriterConfig};
use baler_connector_testkit::within_patience;

use crate::adaptive::{CLEAR, Conversation, ORDER, bridge_and_reader, patterns};
use crate::chunks::{one_empty_record, soon};
use crate::support::Heard;
use crate::tcp_writer::fill;

const CLOSE: &str = "public void shop.Till.close()";

/// Probes without code around them.
#[derive(Debug, Default)]
struct Switched(Mutex<Vec<(&'static str, bool)>>);

impl Switched {
    fn new(signatures: &[&'static str]) -> Arc<Self> {
        let probes = Arc::new(Self::default());
        signatures.iter().for_each(|it| probes.add(it));
        probes
    }

    fn add(&self, signature: &'static str) {
        self.0.lock().unwrap().push((signature, true));
    }

    fn wait_for(&self, expected: &[bool]) {
        within_patience("the verdicts", || self.are(expected).then_some(()));
    }

    fn are(&self, expected: &[bool]) -> bool {
        let probes = self.0.lock().unwrap();
        probes.iter().map(|it| it.1).eq(expected.iter().copied())
    }
}

impl Probes for Switched {
    fn application(&self) -> &'static str {
        "shop"
    }

    fn signatures(&self, from: usize) -> Vec<&'static str> {
        let probes = self.0.lock().unwrap();
        probes[from..].iter().map(|it| it.0).collect()
    }

    fn switch(&self, verdicts: &[(usize, bool)]) {
        let mut probes = self.0.lock().unwrap();
        verdicts.iter().for_each(|it| probes[it.0].1 = it.1);
    }
}

fn writer(port: u16, probes: &Arc<Switched>) -> Box<KiekerTcpWriter> {
    let mut config = KiekerTcpWriterConfig::new("127.0.0.1", port);
    config.adaptive = true;
    config.connect_timeout = Duration::from_secs(2);
    config.window.chunks = NonZeroU32::new(32).unwrap();
    let mut writer = KiekerTcpWriter::new(config);
    writer.set_probes(Arc::<Switched>::clone(probes));
    Box::new(writer)
}

/// The error of a writer that nothing is offered to.
fn broken(writer: &mut KiekerTcpWriter) -> TransportError {
    within_patience("the break", || {
        writer.delivery_reports(&mut Vec::new()).err()
    })
}

fn signatures(bridge: &Bridge) -> Vec<(String, bool)> {
    let programs = bridge.programs(usize::MAX);
    let signatures = programs.iter().flat_map(|it| &it.signatures);
    signatures
        .map(|(signature, is_active)| (signature.to_string(), *is_active))
        .collect()
}

#[test]
fn an_idle_writer_sends_signatures_and_takes_verdicts() {
    let (bridge, mut reader) = bridge_and_reader("- public void shop.Till.*(..)\n", 0);
    let probes = Switched::new(&[ORDER, CLEAR]);
    let mut writer = writer(reader.local_addr().port(), &probes);
    writer.reopen(soon()).unwrap();
    probes.wait_for(&[false, true]);
    // A probe whose first call comes later.
    probes.add(CLOSE);
    probes.wait_for(&[false, true, false]);
    assert_eq!(bridge.programs(usize::MAX)[0].agent, "shop");
    let expected = [(ORDER, false), (CLEAR, true), (CLOSE, false)];
    let expected = expected.map(|(signature, is_active)| (signature.to_owned(), is_active));
    assert_eq!(signatures(&bridge), expected);
    bridge.set_patterns(patterns("- public void shop.Cart.*(..)\n"));
    probes.wait_for(&[true, false, true]);
    writer.offer(one_empty_record(0)).unwrap();
    assert_eq!(Heard::default().until(&mut reader, 1).records.len(), 1);
    let report = writer.close(soon());
    assert!(report.error.is_none(), "{report:?}");
    within_patience("the end", || {
        bridge.programs(usize::MAX).is_empty().then_some(())
    });
    assert!(probes.are(&[true, false, true]), "they stay as they were");
}

#[test]
fn a_lost_connection_is_noticed_while_idle_and_the_next_bridge_decides_anew() {
    let (_bridge, reader) = bridge_and_reader("- public void shop.Till.*(..)\n", 0);
    let port = reader.local_addr().port();
    let probes = Switched::new(&[ORDER, CLEAR]);
    let mut writer = writer(port, &probes);
    writer.reopen(soon()).unwrap();
    probes.wait_for(&[false, true]);
    drop(reader);
    assert!(broken(&mut writer).is_retryable());
    assert!(probes.are(&[false, true]), "they stay as they were");
    probes.add(CLOSE);
    let (bridge, _reader) = bridge_and_reader("- public void shop.Cart.*(..)\n", port);
    writer.reopen(soon()).unwrap();
    probes.wait_for(&[true, false, true]);
    let sent: Vec<_> = signatures(&bridge).into_iter().map(|it| it.0).collect();
    assert_eq!(sent, [ORDER, CLEAR, CLOSE], "in the order of slots");
}

/// Waits for a program's connection.
fn accept(listener: &TcpListener) -> Conversation {
    Conversation::over(listener.accept().unwrap().0, From::Program)
}

fn hello(major: i16) -> Hello {
    Hello {
        major,
        minor: 0,
        features: feature::PUSH,
        max_slots: 1,
        agent: "peer".to_owned(),
    }
}

/// A writer with an open connection to a peer that has answered its Hello.
fn greeted(probes: &Arc<Switched>) -> (Box<KiekerTcpWriter>, Conversation) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut writer = writer(listener.local_addr().unwrap().port(), probes);
    let peer = std::thread::scope(|scope| {
        let opening = scope.spawn(|| writer.reopen(soon()));
        let mut peer = accept(&listener);
        assert!(matches!(peer.next(), Command::Hello(it) if it.agent == "shop"));
        peer.send(|out| push_hello(&hello(2), out));
        opening.join().unwrap().unwrap();
        peer
    });
    (writer, peer)
}

#[test]
fn a_reader_that_does_not_know_the_protocol_gets_a_hello_and_no_record() {
    let probes = Switched::new(&[ORDER]);
    for closes in [true, false] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut writer = writer(listener.local_addr().unwrap().port(), &probes);
        let (error, mut peer) = std::thread::scope(|scope| {
            let opening = scope.spawn(|| writer.reopen(soon()));
            let mut peer = accept(&listener);
            assert!(matches!(peer.next(), Command::Hello(_)));
            if closes {
                peer.stream.shutdown(std::net::Shutdown::Both).unwrap();
            }
            (opening.join().unwrap().unwrap_err(), peer)
        });
        assert!(
            error.is_retryable() && error.message.contains("leave out adaptive=true"),
            "{error}"
        );
        let rejected = writer.offer(one_empty_record(0)).unwrap_err();
        assert_eq!(rejected.chunk.ticket, 0);
        let mut rest = peer.bytes.clone();
        peer.stream.read_to_end(&mut rest).ok();
        assert!(rest.is_empty(), "{rest:?}");
    }
}

#[test]
fn a_writer_without_probes_does_not_open() {
    let mut config = KiekerTcpWriterConfig::new("127.0.0.1", 1);
    config.adaptive = true;
    let error = KiekerTcpWriter::new(config).reopen(soon()).unwrap_err();
    assert_eq!(error.class, RetryClass::Final);
    assert!(error.message.contains("this one has none"), "{error}");
}

#[test]
fn verdicts_count_while_the_reader_takes_no_records() {
    let probes = Switched::new(&[ORDER]);
    let (mut writer, mut peer) = greeted(&probes);
    assert!(matches!(peer.next(), Command::Request { slot: 0, .. }));
    // From now on the peer reads nothing.
    fill(&mut writer);
    peer.send(|out| push_update(Version::V2, 0, false, out));
    probes.wait_for(&[false]);
    peer.send(|out| push_update(Version::V2, 0, true, out));
    probes.wait_for(&[true]);
}

#[test]
fn a_ping_after_a_verdict_is_answered_when_the_verdict_counts() {
    let probes = Switched::new(&[ORDER, CLEAR]);
    let (_writer, mut peer) = greeted(&probes);
    // The peer allows one slot.
    assert!(matches!(peer.next(), Command::Request { slot: 0, .. }));
    for round in 0..20 {
        let is_active = round % 2 == 1;
        peer.send(|out| {
            match round % 3 {
                0 => push_update(Version::V2, 0, is_active, out),
                1 => push_batch(
                    Version::V2,
                    [(0, !is_active), (0, is_active)].into_iter(),
                    out,
                ),
                _ => push_snapshot(1, [(0, is_active)].into_iter(), out),
            }
            push_ping(round, out);
        });
        assert_eq!(peer.next(), Command::Pong(round));
        assert!(probes.are(&[is_active, true]));
    }
    // A slot that the program did not send is refused, and the connection goes on.
    peer.send(|out| push_update(Version::V2, 1, false, out));
    let unknown = ErrorCode::UnknownSlot as i32;
    assert!(
        matches!(peer.next(), Command::Error { code, slot: 1, .. } if code == unknown),
        "an error about the slot"
    );
    peer.send(|out| push_ping(-1, out));
    assert_eq!(peer.next(), Command::Pong(-1));
    assert!(probes.are(&[true, true]));
}

#[test]
fn wrong_commands_end_the_connection() {
    let unknown = |out: &mut Vec<u8>| out.extend((-60_i32).to_be_bytes());
    let record = |out: &mut Vec<u8>| out.extend([0; 12]);
    let hello = |out: &mut Vec<u8>| push_hello(&hello(2), out);
    let bye = |out: &mut Vec<u8>| push_bye(0, out);
    type Push<'a> = &'a dyn Fn(&mut Vec<u8>);
    let wrong: [(Push<'_>, &str); 4] = [
        (&unknown, "the command is unknown"),
        (&record, "the command is unknown"),
        (&hello, "a second Hello"),
        (&bye, "ended the connection"),
    ];
    for (push, reason) in wrong {
        let probes = Switched::new(&[ORDER]);
        let (mut writer, mut peer) = greeted(&probes);
        assert!(matches!(peer.next(), Command::Request { slot: 0, .. }));
        // What came before the wrong command counts.
        peer.send(|out| {
            push_update(Version::V2, 0, false, out);
            push(out);
        });
        let error = broken(&mut writer);
        assert!(error.is_retryable(), "{error}");
        assert!(error.message.contains(reason), "{error}");
        assert!(probes.are(&[false]));
    }
}
