//! Probes that the receiver of the records switches, over the connection of the records.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler::transport::{ChunkReader as _, Received, Verdict};
use baler::{Controller, ControllerConfig, enter};
use baler_connector_kieker::adaptive::Bridge;
use baler_connector_kieker::adaptive::wire::{
    Command, Decoder, From, Hello, Step, Version, feature, push_hello, push_ping, push_update,
};
use baler_connector_kieker::pattern::{Dialect, PatternList};
use baler_connector_kieker::{KiekerTcpConfig, KiekerTcpReader};

use crate::support::{PATIENCE, one_at_a_time, wait_for};

const ORDER: &str = "public void com.shop.Till.order()";

fn order() {
    let _probe = enter!(ORDER);
}

fn check() {
    let _probe = enter!("public void com.health.Monitor.check()");
}

fn config(port: u16) -> ControllerConfig {
    let uri = format!("kieker+tcp://127.0.0.1:{port}?adaptive=true");
    uri.parse().unwrap()
}

/// Installs a controller that sends no record before it is flushed.
fn install(config: ControllerConfig) -> Controller {
    let controller = Controller::with(config, |builder| {
        let builder = builder.metadata_record(false).application("shop");
        builder.wait_time(PATIENCE)
    });
    let controller = controller.unwrap();
    controller.install();
    controller
}

/// Whether a call is recorded now.
fn is_recorded(controller: &Controller, call: fn()) -> bool {
    let before = controller.stats().emitted;
    call();
    controller.stats().emitted > before
}

fn wait_until(controller: &Controller, call: fn(), recorded: bool) {
    wait_for("the verdict", || {
        (is_recorded(controller, call) == recorded).then_some(())
    });
}

/// A receiver with patterns.
struct Receiver {
    bridge: Arc<Bridge>,
    reader: KiekerTcpReader,
    records: u64,
}

impl Receiver {
    /// Listens at this port, or at any for 0. All probes are active.
    fn listen(port: u16) -> Self {
        let bridge = Arc::<Bridge>::default();
        let config = KiekerTcpConfig::new("127.0.0.1", port);
        Self {
            reader: KiekerTcpReader::bind_with(config, Arc::clone(&bridge)).unwrap(),
            bridge,
            records: 0,
        }
    }

    fn port(&self) -> u16 {
        self.reader.local_addr().port()
    }

    fn set_patterns(&self, text: &str) {
        let (list, errors) = PatternList::parse(text, Dialect::Strict);
        assert!(errors.is_empty(), "{errors:?}");
        self.bridge.set_patterns(list);
    }

    /// Returns how many records came since the last call.
    fn receive(&mut self, controller: &Controller) -> u64 {
        controller.flush(PATIENCE).unwrap();
        let (before, sent) = (self.records, controller.stats().delivered);
        wait_for("the records", || {
            let by = Instant::now() + Duration::from_millis(20);
            if let Received::Chunk(delivery) = self.reader.receive(by).unwrap() {
                self.records += u64::from(delivery.meta.unwrap().records);
                self.reader.settle(delivery.token, Verdict::Ack).unwrap();
            }
            (self.records >= sent).then_some(())
        });
        self.records - before
    }
}

#[test]
fn the_receiver_switches_a_package_of_an_idle_program_off_and_on() {
    let _alone = one_at_a_time();
    let mut receiver = Receiver::listen(0);
    let controller = install(config(receiver.port()));
    assert!(is_recorded(&controller, order) && is_recorded(&controller, check));
    wait_for("the signatures", || {
        let programs = receiver.bridge.programs(usize::MAX);
        let program = programs.first()?;
        (program.agent == "shop" && program.signatures.len() == 2).then_some(())
    });
    receiver.set_patterns("- * com.shop..*.*(..)\n");
    wait_until(&controller, order, false);
    receiver.receive(&controller);
    (0..1_000).for_each(|_| order());
    check();
    assert_eq!(receiver.receive(&controller), 1, "the check alone");
    // Now no record is written any more.
    receiver.set_patterns("- *\n");
    wait_until(&controller, check, false);
    receiver.set_patterns("");
    wait_until(&controller, order, true);
    wait_until(&controller, check, true);

    // A probe records if both sides allow it.
    controller.deactivate("* com.shop..*.*(..)").unwrap();
    assert!(!is_recorded(&controller, order));
    receiver.set_patterns("- *\n");
    wait_until(&controller, check, false);
    receiver.set_patterns("");
    wait_until(&controller, check, true);
    assert!(!is_recorded(&controller, order));
    receiver.set_patterns("- *\n");
    wait_until(&controller, check, false);
    controller.activate("*").unwrap();
    assert!(!is_recorded(&controller, order));
    // Verdicts belong to the controller whose connection brought them.
    let other = install("null:".parse().unwrap());
    assert!(is_recorded(&other, order) && is_recorded(&other, check));
    controller.install();
    assert!(!is_recorded(&controller, order));
    for controller in [controller, other] {
        let report = controller.shutdown(PATIENCE);
        assert!(report.adds_up(), "{report}");
    }
}

#[test]
fn a_program_without_records_finds_a_receiver_that_was_started_again() {
    finds_a_receiver_that_was_started_again(|_| ());
}

#[cfg(feature = "spool")]
#[test]
fn a_program_with_a_spool_finds_a_receiver_that_was_started_again() {
    let folder = tempfile::tempdir().unwrap();
    finds_a_receiver_that_was_started_again(|config| config.spool = Some(folder.path().into()));
}

fn finds_a_receiver_that_was_started_again(set_up: impl FnOnce(&mut ControllerConfig)) {
    let _alone = one_at_a_time();
    let receiver = Receiver::listen(0);
    let port = receiver.port();
    let mut config = config(port);
    set_up(&mut config);
    let controller = install(config);
    receiver.set_patterns("- *\n");
    wait_until(&controller, order, false);
    controller.flush(PATIENCE).unwrap();
    drop(receiver);
    assert!(!is_recorded(&controller, order));
    let receiver = Receiver::listen(port);
    wait_until(&controller, order, true);
    assert_eq!(
        receiver.bridge.programs(usize::MAX)[0].signatures[0]
            .0
            .as_ref(),
        ORDER
    );
    controller.shutdown(PATIENCE);
}

#[test]
fn after_an_acknowledged_deactivation_no_new_call_is_recorded() {
    let _alone = one_at_a_time();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let controller = install(config(port));
    assert!(is_recorded(&controller, order));
    let mut program = Program {
        stream: listener.accept().unwrap().0,
        bytes: Vec::new(),
    };
    let Command::Hello(hello) = program.next() else {
        panic!("no Hello");
    };
    program.send(|out| {
        push_hello(
            &Hello {
                features: feature::PUSH,
                ..hello
            },
            out,
        )
    });
    // Other tests of the process may have other probes.
    let slot = loop {
        match program.next() {
            Command::Request { slot, signature } if signature == ORDER => break slot,
            Command::Request { .. } => {}
            other => panic!("{other:?}"),
        }
    };
    for number in 0..20 {
        let is_active = number % 2 == 1;
        program.send(|out| {
            push_update(Version::V2, slot, is_active, out);
            push_ping(number, out);
        });
        while program.next() != Command::Pong(number) {}
        for _ in 0..100 {
            assert_eq!(is_recorded(&controller, order), is_active);
        }
    }
    controller.shutdown(Duration::from_millis(100));
}

/// A program, as its peer sees it.
struct Program {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Program {
    fn send(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        push(&mut bytes);
        self.stream.write_all(&bytes).unwrap();
    }

    fn next(&mut self) -> Command {
        let mut decoder = Decoder::new(Version::V2, From::Program);
        loop {
            if let Step::Command(command, taken) = decoder.step(&self.bytes).unwrap() {
                self.bytes.drain(..taken);
                return command;
            }
            let mut more = [0; 4_096];
            let read = self.stream.read(&mut more).unwrap();
            assert!(read > 0, "the program closed the connection");
            self.bytes.extend(&more[..read]);
        }
    }
}
