//! Programs that speak the adaptive protocol, before a reader with patterns.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use baler_connector_kieker::adaptive::Bridge;
use baler_connector_kieker::adaptive::wire::{
    Command, Decoder, From, Hello, Step, Version, feature, push_batch_request, push_hello,
    push_ping, push_request,
};
use baler_connector_kieker::pattern::{Dialect, PatternList};
use baler_connector_kieker::{KiekerTcpConfig, KiekerTcpReader};
use baler_connector_testkit::within_patience;

use crate::support::{EMPTY, Heard, connect, record, registered};

pub(crate) const ORDER: &str = "public void shop.Till.order(u32)";
pub(crate) const CLEAR: &str = "public void shop.Cart.clear()";

pub(crate) fn patterns(text: &str) -> PatternList {
    let (list, errors) = PatternList::parse(text, Dialect::Strict);
    assert!(errors.is_empty(), "{errors:?}");
    list
}

pub(crate) fn bridge_and_reader(text: &str, port: u16) -> (Arc<Bridge>, KiekerTcpReader) {
    let bridge = Arc::new(Bridge::new(patterns(text)));
    let config = KiekerTcpConfig::new("127.0.0.1", port);
    let reader = KiekerTcpReader::bind_with(config, Arc::clone(&bridge)).unwrap();
    (bridge, reader)
}

/// One end of a connection that speaks the protocol.
pub(crate) struct Conversation {
    pub(crate) stream: TcpStream,
    decoder: Decoder,
    /// Received, and not taken yet.
    pub(crate) bytes: Vec<u8>,
}

impl Conversation {
    fn hello(reader: &KiekerTcpReader) -> Self {
        let mut client = Self::plain(reader);
        client.send(|out| push_hello(&hello(2), out));
        assert!(matches!(client.next(), Command::Hello(it) if it.major == 2));
        client
    }

    fn plain(reader: &KiekerTcpReader) -> Self {
        Self::over(connect(reader.local_addr()), From::Bridge)
    }

    /// Takes the commands of this end of the stream.
    pub(crate) fn over(stream: TcpStream, from: From) -> Self {
        let patience = Duration::from_secs(30);
        stream.set_read_timeout(Some(patience)).unwrap();
        Self {
            stream,
            decoder: Decoder::new(Version::V2, from),
            bytes: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        push(&mut bytes);
        self.stream.write_all(&bytes).unwrap();
    }

    pub(crate) fn next(&mut self) -> Command {
        loop {
            let step = match self.bytes.is_empty() {
                true => Step::More(1),
                false => self.decoder.step(&self.bytes).unwrap(),
            };
            match step {
                Step::Command(command, taken) => {
                    self.bytes.drain(..taken);
                    return command;
                }
                Step::Entries(taken) => drop(self.bytes.drain(..taken)),
                Step::More(_) => {
                    let mut more = [0; 4_096];
                    let read = self.stream.read(&mut more).unwrap();
                    assert!(read > 0, "the other end closed the connection");
                    self.bytes.extend(&more[..read]);
                }
            }
        }
    }
}

fn hello(major: i16) -> Hello {
    Hello {
        major,
        minor: 0,
        features: feature::PUSH | feature::BATCH | feature::SNAPSHOT,
        max_slots: 100,
        agent: "app".to_owned(),
    }
}

const fn update(slot: u32, is_active: bool) -> Command {
    Command::Update { slot, is_active }
}

#[test]
fn requests_are_answered_and_changes_are_pushed_among_records() {
    let (bridge, mut reader) = bridge_and_reader("- public void shop.Till.*(..)\n", 0);
    let mut client = Conversation::hello(&reader);
    client.send(|out| {
        push_request(Version::V2, 0, ORDER, out);
        out.extend(registered(0, EMPTY));
        out.extend(record(0, 1));
        push_batch_request([(1, CLEAR)].into_iter(), out);
        out.extend(record(0, 2));
    });
    assert_eq!(client.next(), update(0, false));
    assert_eq!(client.next(), update(1, true));
    assert_eq!(Heard::default().until(&mut reader, 2).records.len(), 2);
    let change = bridge.set_patterns(patterns("- public void shop.Cart.*(..)\n"));
    assert_eq!((change.programs, change.slots), (1, 2));
    assert!(matches!(client.next(), Command::Snapshot(_)));
    assert_eq!(
        [client.next(), client.next()],
        [update(0, true), update(1, false)]
    );
    let program = bridge.programs(1_000).remove(0);
    assert_eq!(program.agent, "app");
    assert_eq!(
        program.signatures,
        [(ORDER.into(), true), (CLEAR.into(), false)]
    );
    client.send(|out| push_ping(7, out));
    assert_eq!(client.next(), Command::Pong(7));
    drop(client);
    within_patience("the end", || bridge.programs(0).is_empty().then_some(()));
}

#[test]
fn a_sender_without_hello_never_sees_a_byte() {
    let (bridge, mut reader) = bridge_and_reader("- *\n", 0);
    let mut client = Conversation::plain(&reader);
    client.send(|out| {
        out.extend(registered(0, EMPTY));
        out.extend(record(0, 1));
    });
    Heard::default().until(&mut reader, 1);
    bridge.set_patterns(PatternList::new());
    client
        .stream
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let read = client.stream.read(&mut [0]).unwrap_err();
    assert!(matches!(
        read.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut
    ));
    // Nor does one whose first command is another one: it is closed.
    let mut client = Conversation::plain(&reader);
    client.send(|out| push_request(Version::V2, 0, ORDER, out));
    let damaged = Heard::damage(&mut reader);
    assert!(
        damaged.reason.contains("before a Hello"),
        "{}",
        damaged.reason
    );
    let mut rest = Vec::new();
    client.stream.read_to_end(&mut rest).ok();
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn wrong_commands_are_answered_by_an_error_and_the_end() {
    let (_bridge, mut reader) = bridge_and_reader("", 0);
    let long =
        |out: &mut Vec<u8>| (0..101).for_each(|it| push_request(Version::V2, it, CLEAR, out));
    let unknown = |out: &mut Vec<u8>| out.extend((-60_i32).to_be_bytes());
    let gap = |out: &mut Vec<u8>| push_request(Version::V2, 1, CLEAR, out);
    let bytes = |push: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        push(&mut out);
        out
    };
    let wrong = [(bytes(&long), 3), (bytes(&unknown), 5), (bytes(&gap), 6)];
    for (bytes, expected) in wrong {
        let mut client = Conversation::hello(&reader);
        client.send(|out| out.extend(&bytes));
        let code = loop {
            match client.next() {
                Command::Error { code, .. } => break code,
                Command::Update { .. } => {}
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(code, expected);
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
        drop(client);
        Heard::damage(&mut reader);
    }
    let mut client = Conversation::plain(&reader);
    client.send(|out| push_hello(&hello(1), out));
    assert!(matches!(client.next(), Command::Error { code: 1, .. }));
}

#[test]
fn a_program_that_does_not_read_delays_no_other() {
    let (bridge, reader) = bridge_and_reader("", 0);
    let mut slow = Conversation::hello(&reader);
    slow.send(|out| push_request(Version::V2, 0, ORDER, out));
    let mut quick = Conversation::hello(&reader);
    quick.send(|out| push_request(Version::V2, 0, ORDER, out));
    assert_eq!(quick.next(), update(0, true));
    for round in 0..2_000 {
        let is_active = round % 2 == 1;
        bridge.set_patterns(patterns(if is_active { "+ *" } else { "- *" }));
        slow.send(|out| push_ping(round, out));
        assert_eq!(quick.next(), update(0, is_active));
    }
    // The last verdict arrives, whatever was merged.
    slow.send(|out| push_ping(-1, out));
    let mut last = None;
    loop {
        match slow.next() {
            Command::Update { is_active, .. } => last = Some(is_active),
            Command::Pong(-1) => break,
            _ => {}
        }
    }
    assert_eq!(last, Some(true));
}
