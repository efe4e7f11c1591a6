//! How each fault is done to a run.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::fleet::Ending;
use super::oracle::Teller;
use super::orders::Order;
use super::run::Run;
use super::stand::{Harm, broken};
use crate::args::FaultChoice;
use crate::exit::Failure;

/// How long a consumer that was told to hold a chunk is waited for.
const HOLDING: Duration = Duration::from_secs(8);

/// How long to wait for it before a few records more are made.
const TRICKLE: Duration = Duration::from_millis(400);

/// How many foreign chunks come at a time, at most.
const MOST_POISON: u64 = 8;

/// The queues of a producer that is to overflow.
const SMALL_QUEUES: &str = "64KiB";

impl Run<'_> {
    /// Injects a fault, lets it last, and mends it; says what was done.
    ///
    /// # Errors
    ///
    /// The fault itself could not be made: nothing is known of the endpoint then.
    pub(super) fn inject(&mut self, fault: FaultChoice) -> Result<String, Failure> {
        let held = Duration::from_millis(self.random.between(200, 1_000));
        match fault {
            FaultChoice::BrokerDownAtStart | FaultChoice::All => Ok(String::new()),
            FaultChoice::BrokerRestart | FaultChoice::BrokerKill => {
                let kill = fault == FaultChoice::BrokerKill;
                self.stand.end(kill)?;
                self.pause(held);
                self.stand.start()?;
                Ok(format!("away for {held:.1?} and more"))
            }
            FaultChoice::LeaderMove
            | FaultChoice::CoordinatorMove
            | FaultChoice::RequestErrors
            | FaultChoice::Throttle
            | FaultChoice::ConnectionClosed
            | FaultChoice::Blocked => {
                let done = self.stand.begin(fault, &mut self.random)?;
                self.pause(held);
                self.stand.heal(fault)?;
                Ok(done)
            }
            FaultChoice::Stall
            | FaultChoice::HalfOpen
            | FaultChoice::Reset
            | FaultChoice::SlowLink => Ok(self.harm_network(fault, held)),
            FaultChoice::ProducerTerm
            | FaultChoice::ProducerKill
            | FaultChoice::ConsumerTerm
            | FaultChoice::ConsumerKill
            | FaultChoice::Rebalance
            | FaultChoice::ConsumerSlow => self.harm_processes(fault, held),
            FaultChoice::DiskFull => {
                let bytes = self.random.between(4_000, 60_000);
                self.order_producers(Order::LimitFiles { bytes });
                self.pause(held);
                self.order_producers(Order::LimitFiles { bytes: 0 });
                Ok(format!("no file longer than {bytes} bytes"))
            }
            FaultChoice::TornWrite => self.tear(),
            FaultChoice::Poison => {
                let count = self.random.between(1, MOST_POISON);
                let producer = self.any_producer();
                self.fleet().poison(producer, self.poisons, count);
                self.poisons = self.poisons.saturating_add(count);
                self.pause(held);
                Ok(format!("{count} foreign chunks by producer {producer}"))
            }
            FaultChoice::Overflow => self.overflow(),
        }
    }

    fn harm_network(&mut self, fault: FaultChoice, held: Duration) -> String {
        match fault {
            FaultChoice::Stall => {
                self.stand.network(Harm::Frozen(true));
                self.pause(held * 2);
                self.stand.network(Harm::Frozen(false));
                format!("nothing passes for {:.1?}", held * 2)
            }
            FaultChoice::HalfOpen => {
                self.stand.network(Harm::Abandon);
                self.pause(held);
                "connections stand still for good".to_owned()
            }
            FaultChoice::Reset => {
                let cuts = self.random.between(1, 4);
                for _ in 0..cuts {
                    let bytes = self.random.between(1, 20_000);
                    self.stand.network(Harm::CutAfter(bytes));
                    self.pause(held / 2);
                }
                format!("{cuts} times in the middle of something")
            }
            _ => {
                let rate = self.random.between(20_000, 200_000);
                self.stand.network(Harm::Slow(rate));
                self.pause(held * 2);
                self.stand.network(Harm::Fast);
                format!("{rate} bytes a second")
            }
        }
    }

    fn harm_processes(&mut self, fault: FaultChoice, held: Duration) -> Result<String, Failure> {
        match fault {
            FaultChoice::ProducerTerm | FaultChoice::ProducerKill => {
                let producer = self.any_producer();
                let life = self.fleet().life(producer);
                // Before it listens to signals, SIGTERM is as hard as SIGKILL.
                let teller = Teller::Producer {
                    producer: u16::try_from(producer).unwrap_or(u16::MAX),
                    life,
                };
                self.wait_until_ready(teller);
                if fault == FaultChoice::ProducerKill {
                    self.fleet().kill_producer(producer);
                } else {
                    self.fleet().end_producer(producer, Ending::Terminate);
                }
                self.pause(held / 4);
                self.fleet().revive_producer(producer, &[])?;
                Ok(format!("life {life} of producer {producer}"))
            }
            FaultChoice::ConsumerTerm => {
                let consumer = self.any_consumer();
                if let Some(reader) = self.fleet().reader(consumer) {
                    self.wait_until_ready(Teller::Reader(reader));
                }
                self.fleet().end_consumer(consumer, Ending::Terminate);
                self.pause(held / 4);
                self.fleet().revive_consumer(consumer)?;
                Ok(format!("consumer {consumer}"))
            }
            FaultChoice::ConsumerKill => {
                let consumer = self.any_consumer();
                let holds = self.make_it_hold(consumer);
                self.fleet().kill_consumer(consumer);
                self.pause(held / 4);
                self.fleet().revive_consumer(consumer)?;
                let how = if holds {
                    "between decoding and settling"
                } else {
                    "idle"
                };
                Ok(format!("consumer {consumer}, {how}"))
            }
            FaultChoice::Rebalance => {
                let joined = self.fleet().add_consumer()?;
                self.pause(held * 2);
                self.fleet().end_consumer(joined, Ending::Finish);
                Ok(format!("consumer {joined} joined and left"))
            }
            _ => {
                let micros = self.random.between(2_000, 20_000);
                let chunk = Duration::from_micros(micros);
                self.order_consumers(Order::Slow { chunk });
                self.pause(held);
                let chunk = Duration::ZERO;
                self.order_consumers(Order::Slow { chunk });
                Ok(format!("{micros} us for each chunk"))
            }
        }
    }

    fn wait_until_ready(&self, teller: Teller) {
        let by = Instant::now() + HOLDING;
        self.board.wait_for(by, |oracle| oracle.is_ready(teller));
    }

    /// Makes a consumer hold the next chunk that it gets, and sees to it that there is one; whether
    /// it does.
    fn make_it_hold(&self, consumer: usize) -> bool {
        let Some(reader) = self.fleet().reader(consumer) else {
            return false;
        };
        if let Some(process) = self.fleet().consumer(consumer) {
            process.order(Order::Hold);
        }
        let by = Instant::now() + HOLDING;
        while Instant::now() < by {
            let soon = Instant::now() + TRICKLE;
            if self
                .board
                .wait_for(soon, |oracle| oracle.is_holding(reader))
            {
                return true;
            }
            self.fleet().trickle();
        }
        false
    }

    /// A producer is replaced, for a while, by one that drops what does not fit.
    fn overflow(&mut self) -> Result<String, Failure> {
        let producer = self.any_producer();
        let policy = match self.random.between(0, 1) {
            0 => "drop-newest",
            _ => "drop-oldest",
        };
        let records = self.plan.burst.max(1);
        let mut fleet = self.fleet();
        fleet.end_producer(producer, Ending::Finish);
        let flags = ["--overflow", policy, "--queue-bytes", SMALL_QUEUES];
        let flags: Vec<String> = flags.into_iter().map(str::to_owned).collect();
        fleet.revive_producer(producer, &flags)?;
        fleet.give_to(producer, records);
        drop(fleet);
        self.pause(Duration::from_millis(300));
        self.fleet().end_producer(producer, Ending::Finish);
        self.fleet().revive_producer(producer, &[])?;
        Ok(format!("{records} records at once with {policy}"))
    }

    /// A producer is killed, and what it wrote last is found torn: half a frame that nobody was
    /// told of.
    fn tear(&mut self) -> Result<String, Failure> {
        let producer = self.any_producer();
        self.fleet().kill_producer(producer);
        let folder = self.folder(producer);
        let torn = match folder.as_deref().and_then(newest_segment) {
            None => "no segment yet".to_owned(),
            Some(segment) => {
                let count = usize::try_from(self.random.between(1, 3_000)).unwrap_or(1);
                let bytes = self.random.bytes(count);
                self.board.lock().expect_damage(bytes.clone());
                OpenOptions::new()
                    .append(true)
                    .open(&segment)
                    .and_then(|mut file| file.write_all(&bytes))
                    .map_err(broken)?;
                format!("{count} bytes behind the last frame")
            }
        };
        self.pause(Duration::from_millis(50));
        self.fleet().revive_producer(producer, &[])?;
        Ok(format!("producer {producer}: {torn}"))
    }

    fn any_producer(&mut self) -> usize {
        let most = self.fleet().producers().saturating_sub(1);
        self.any(most)
    }

    fn any_consumer(&mut self) -> usize {
        let most = usize::from(self.plan.consumers).saturating_sub(1);
        self.any(most)
    }

    fn any(&mut self, most: usize) -> usize {
        let most = u64::try_from(most).unwrap_or(0);
        usize::try_from(self.random.between(0, most)).unwrap_or(0)
    }

    fn order_producers(&self, order: Order) {
        let mut fleet = self.fleet();
        for number in 0..fleet.producers() {
            if let Some(process) = fleet.producer(number) {
                process.order(order);
            }
        }
    }

    fn order_consumers(&self, order: Order) {
        let mut fleet = self.fleet();
        for number in 0..fleet.consumers() {
            if let Some(process) = fleet.consumer(number) {
                process.order(order);
            }
        }
    }
}

fn newest_segment(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "seg"))
        .max()
}
