//! Programs that attack the bridge: others are switched and their records go on, in bounded memory.

use std::io::Write as _;
use std::thread;

use super::*;
use crate::hostile::peak_memory;

const MIB: u64 = 1 << 20;

/// A relay, and a program whose probe must be switched in time whatever others do.
struct Attacked {
    switching: Switching,
    good: Client,
    is_active: bool,
    before: u64,
    records: usize,
}

impl Attacked {
    fn start() -> Self {
        let switching = Switching::start("");
        let mut good = switching.client("good");
        assert_eq!(good.register(0, &[ORDER]), [true]);
        good.send(&registration());
        let before = peak_memory(&switching.relay.process);
        Self {
            switching,
            good,
            is_active: true,
            before,
            records: 0,
        }
    }

    fn attacker(&self) -> Client {
        self.switching.client("attacker")
    }

    /// Switches all probes of all programs, and sends a record of the good one.
    fn switch(&mut self) {
        let started = Instant::now();
        self.is_active = !self.is_active;
        let action = if self.is_active {
            "activate"
        } else {
            "deactivate"
        };
        self.switching.switch(action, "*");
        assert_eq!(self.good.item(), Item::Verdicts(vec![(0, self.is_active)]));
        let elapsed = started.elapsed();
        assert!(elapsed < PROMPT, "{elapsed:?}");
        self.good.send(&records(1));
        self.records += 1;
    }

    /// Asserts that the peak of memory grew by at most this, and that every record arrived.
    fn end(self, growth: u64) {
        let grown = peak_memory(&self.switching.relay.process) - self.before;
        assert!(grown < growth, "{} MiB", grown / MIB);
        drop(self.good);
        wait_for("the end of all programs", || {
            (self.switching.list()["programs"] == json!([])).then_some(())
        });
        wait_for("the records", || {
            (self.switching.records() == self.records).then_some(())
        });
        self.switching.relay.end();
    }
}

/// Sends what is taken, and returns the error that ends the connection.
fn error_of(mut client: Client) -> i32 {
    loop {
        match client.item() {
            Item::Error(code) => return code,
            Item::Verdicts(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_flood_of_signatures_ends_at_its_limit() {
    let mut attacked = Attacked::start();
    // Long ones reach the limit of memory.
    let mut flood = attacked.attacker();
    let long = "x".repeat(64 << 10);
    for slot in 0..1_100 {
        // The relay ends the connection before all are sent.
        if flood.stream.write_all(&request(slot, &[&long])).is_err() {
            break;
        }
        if slot % 200 == 0 {
            attacked.switch();
        }
    }
    assert_eq!(error_of(flood), 3);
    attacked.switch();
    // Short ones stay connected, and cost their matching alone.
    let mut flood = attacked.attacker();
    let short: Vec<_> = (0..20_000).map(|it| format!("void a.B.c{it}()")).collect();
    let short: Vec<_> = short.iter().map(String::as_str).collect();
    flood.register(0, &short);
    attacked.switch();
    drop(flood);
    attacked.end(160 * MIB);
}

#[test]
fn a_program_that_never_reads_costs_its_slots_alone() {
    let mut attacked = Attacked::start();
    let mut deaf = attacked.attacker();
    for first in (0..100_000).step_by(20_000) {
        deaf.register(first, &[CLEAR; 20_000]);
    }
    // Each change is 0.5 MB for it. Changes that undo each other do not wait, so the system's buffers
    // must be full before an odd one.
    let waits = (0..100).any(|_| {
        attacked.switch();
        attacked.switching.list()["programs"][1]["waiting"].as_u64() > Some(0)
    });
    assert!(waits, "its verdicts wait");
    // Nor does one that asks and asks.
    let mut asking = attacked.attacker();
    asking.stream.set_write_timeout(Some(PROMPT)).unwrap();
    for number in 0..20_000 {
        if asking.stream.write_all(&ping(number)).is_err() {
            break;
        }
    }
    attacked.switch();
    drop((deaf, asking));
    attacked.end(64 * MIB);
}

#[test]
fn programs_that_die_in_mid_command_disturb_no_other() {
    let mut attacked = Attacked::start();
    let whole = request(0, &[ORDER, CLEAR]);
    for end in 0..whole.len() {
        let mut dying = attacked.attacker();
        if end % 2 == 0 {
            // Its answer is not read, so the system resets the connection.
            dying.send(&ping(1));
            dying.stream.peek(&mut [0]).unwrap();
        }
        dying.send(&whole[..end]);
        drop(dying);
        if end % 10 == 0 {
            attacked.switch();
        }
    }
    attacked.end(64 * MIB);
}

#[test]
fn many_programs_are_switched_at_once() {
    let mut attacked = Attacked::start();
    let connect = |number: usize| {
        let mut client = attacked.attacker();
        let signature = format!("void a.B.c{number}()");
        assert_eq!(client.register(0, &[ORDER, &signature]), [true, true]);
        client
    };
    let mut clients: Vec<_> = thread::scope(|scope| {
        let each = |part: usize| (0..100).map(move |it| 100 * part + it);
        let started = [0, 1, 2].map(|part| scope.spawn(move || each(part).map(connect).collect()));
        let parts = started.map(|it| -> Vec<Client> { it.join().unwrap() });
        parts.into_iter().flatten().collect()
    });
    let started = Instant::now();
    attacked.switch();
    for client in &mut clients {
        assert_eq!(client.item(), Item::Verdicts(vec![(0, false), (1, false)]));
    }
    let elapsed = started.elapsed();
    assert!(elapsed < PROMPT, "{elapsed:?}");
    let list = attacked.switching.list();
    assert_eq!(list["programs"].as_array().unwrap().len(), 301);
    drop(clients);
    attacked.end(64 * MIB);
}
