//! Injects each kind of fault into a run.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::fleet::Ending;
use super::messages::{Life, Order, Role};
use super::records::foreign_bytes;
use super::run::Run;
use super::stand::{Harm, Medium, broken};
use crate::args::FaultChoice;
use crate::exit::Failure;

/// How long to wait until a consumer holds a chunk, or until a process is ready.
const PATIENCE: Duration = Duration::from_secs(8);

impl Run<'_> {
    /// Injects a fault, lets it last, and ends it. Returns a description of it.
    ///
    /// # Errors
    ///
    /// The fault could not be injected. The run then proves nothing about the endpoint.
    pub(super) fn inject(&mut self, fault: FaultChoice) -> Result<String, Failure> {
        use FaultChoice as Fault;
        let held = Duration::from_millis(self.random.between(200, 1_000));
        match fault {
            Fault::All | Fault::BrokerDownAtStart => Ok(String::new()),
            Fault::BrokerRestart | Fault::BrokerKill => {
                self.with_medium(|medium| medium.end(fault == Fault::BrokerKill))?;
                self.fleet.pause(held);
                self.with_medium(|medium| medium.start())?;
                Ok(format!("away for {held:.1?} and more"))
            }
            Fault::LeaderMove
            | Fault::CoordinatorMove
            | Fault::RequestErrors
            | Fault::Throttle
            | Fault::ConnectionClosed
            | Fault::Blocked => {
                let mut random = self.random.clone();
                let done = self.with_medium(|medium| medium.begin(fault, &mut random))?;
                self.random = random;
                self.fleet.pause(held);
                self.with_medium(|medium| medium.heal(fault))?;
                Ok(done)
            }
            Fault::Stall => {
                self.harm(Harm::Frozen(true), held * 2)?;
                self.harm(Harm::Frozen(false), Duration::ZERO)?;
                Ok(format!("nothing passes for {:.1?}", held * 2))
            }
            Fault::HalfOpen => {
                self.harm(Harm::Abandon, held)?;
                Ok("connections stand still for good".to_owned())
            }
            Fault::Reset => {
                let cuts = self.random.between(1, 4);
                for _ in 0..cuts {
                    let bytes = self.random.between(1, 20_000);
                    self.harm(Harm::CutAfter(bytes), held / 2)?;
                }
                Ok(format!("{cuts} times in the middle of something"))
            }
            Fault::SlowLink => {
                let rate = self.random.between(20_000, 200_000);
                self.harm(Harm::Slow(Some(rate)), held * 2)?;
                self.harm(Harm::Slow(None), Duration::ZERO)?;
                Ok(format!("{rate} bytes a second"))
            }
            Fault::ProducerTerm => self.replace(Role::Producer, Some(Ending::Terminate), held),
            Fault::ProducerKill => self.replace(Role::Producer, None, held),
            Fault::ConsumerTerm => self.replace(Role::Consumer, Some(Ending::Terminate), held),
            Fault::ConsumerKill => self.kill_consumer(held),
            Fault::Rebalance => {
                let joined = self.fleet.count(Role::Consumer);
                self.fleet.start(Role::Consumer, joined, &[])?;
                self.fleet.pause(held * 2);
                self.fleet.end(Role::Consumer, joined, Ending::Finish);
                Ok(format!("consumer {joined} joined and left"))
            }
            Fault::ConsumerSlow => {
                let micros = self.random.between(2_000, 20_000);
                let slow = |chunk| Order::Slow { chunk };
                let chunk = Duration::from_micros(micros);
                self.fleet.order_all(Role::Consumer, slow(chunk));
                self.fleet.pause(held);
                self.fleet.order_all(Role::Consumer, slow(Duration::ZERO));
                Ok(format!("{micros} us for each chunk"))
            }
            Fault::DiskFull => {
                let bytes = self.random.between(4_000, 60_000);
                let limit = |bytes| Order::LimitFiles { bytes };
                self.fleet.order_all(Role::Producer, limit(bytes));
                self.fleet.pause(held);
                self.fleet.order_all(Role::Producer, limit(0));
                Ok(format!("no file longer than {bytes} bytes"))
            }
            Fault::TornWrite => self.tear(),
            Fault::Poison => {
                let (first, count) = (self.poisons, self.random.between(1, 8));
                let producer = self.any(Role::Producer);
                for number in first..first + count {
                    let bytes = foreign_bytes(self.args.seed, number);
                    self.fleet.oracle.expect_foreign(bytes);
                }
                let order = Order::Poison { first, count };
                self.fleet.order(Role::Producer, producer, order);
                self.poisons += count;
                self.fleet.pause(held);
                Ok(format!("{count} foreign chunks by producer {producer}"))
            }
            Fault::Overflow => self.overflow(),
        }
    }

    /// Runs `work` on the stand's broker while records keep flowing.
    pub(super) fn with_medium<T: Send>(
        &mut self,
        work: impl FnOnce(&mut dyn Medium) -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        let Some(medium) = self.stand.medium.as_deref_mut() else {
            return Err(broken("the endpoint has no broker that can break"));
        };
        thread::scope(|scope| {
            let worker = scope.spawn(|| work(medium));
            // After a signal, `pause` returns at once, so only `join` waits.
            while !worker.is_finished() && !self.shutdown.is_requested() {
                self.fleet.pause(Duration::from_millis(5));
            }
            worker.join().map_err(Failure::panicked)?
        })
    }

    fn harm(&mut self, harm: Harm, time: Duration) -> Result<(), Failure> {
        self.with_medium(|medium| {
            medium.network(harm);
            Ok(())
        })?;
        self.fleet.pause(time);
        Ok(())
    }

    /// Ends a process, or kills it if `how` is `None`, and starts its next life.
    fn replace(
        &mut self,
        role: Role,
        how: Option<Ending>,
        held: Duration,
    ) -> Result<String, Failure> {
        let number = self.any(role);
        let life = self.fleet.life(role, number);
        // Before a process listens to signals, SIGTERM kills it as SIGKILL does.
        let by = Instant::now() + PATIENCE;
        self.fleet.run_until(by, |it| it.oracle.is_ready(life));
        match how {
            Some(how) => self.fleet.end(role, number, how),
            None => self.fleet.kill(role, number),
        }
        self.fleet.pause(held / 4);
        self.fleet.start(role, number, &[])?;
        Ok(format!("life {} of {role:?} {number}", life.life).to_lowercase())
    }

    fn kill_consumer(&mut self, held: Duration) -> Result<String, Failure> {
        let number = self.any(Role::Consumer);
        let life = self.fleet.life(Role::Consumer, number);
        let how = match self.makes_hold(life) {
            true => "between decoding and settling",
            false => "idle",
        };
        self.fleet.kill(Role::Consumer, number);
        self.fleet.pause(held / 4);
        self.fleet.start(Role::Consumer, number, &[])?;
        Ok(format!("consumer {number}, {how}"))
    }

    /// Orders a consumer to hold its next chunk, and plans records so that one comes. Returns
    /// whether the consumer holds a chunk.
    fn makes_hold(&mut self, life: Life) -> bool {
        self.fleet.order(life.role, life.number, Order::Hold);
        let by = Instant::now() + PATIENCE;
        let mut more_at = Instant::now() + Duration::from_millis(400);
        self.fleet.run_until(by, |fleet| {
            if Instant::now() >= more_at && fleet.planned == 0 {
                fleet.plan(100, 1);
                more_at = Instant::now() + Duration::from_millis(400);
            }
            fleet.oracle.is_holding(life)
        })
    }

    /// Replaces a producer, for a while, by a producer that drops records that do not fit.
    fn overflow(&mut self) -> Result<String, Failure> {
        let (producer, records) = (self.any(Role::Producer), self.burst());
        let policy = match self.random.between(0, 1) {
            0 => "drop-newest",
            _ => "drop-oldest",
        };
        let small = ["--overflow", policy, "--queue-bytes", "64KiB"];
        self.fleet.end(Role::Producer, producer, Ending::Finish);
        self.fleet.start(Role::Producer, producer, &small)?;
        self.fleet.give_to(producer, records);
        self.fleet.pause(Duration::from_millis(300));
        self.fleet.end(Role::Producer, producer, Ending::Finish);
        self.fleet.start(Role::Producer, producer, &[])?;
        Ok(format!("{records} records at once with {policy}"))
    }

    /// Kills a producer, and makes its last write look torn: appends bytes that no producer
    /// reported.
    fn tear(&mut self) -> Result<String, Failure> {
        let producer = self.any(Role::Producer);
        self.fleet.kill(Role::Producer, producer);
        let segment = self.folder(producer).as_deref().and_then(newest_segment);
        let torn = match segment {
            None => "no segment yet".to_owned(),
            Some(segment) => {
                let count = self.random.between(1, 3_000);
                let bytes = self.random.bytes(count);
                let file = OpenOptions::new().append(true).open(segment);
                file.and_then(|mut file| file.write_all(&bytes))
                    .map_err(broken)?;
                self.fleet.oracle.expect_damage(bytes);
                format!("{count} bytes after the last frame")
            }
        };
        self.fleet.pause(Duration::from_millis(50));
        self.fleet.start(Role::Producer, producer, &[])?;
        Ok(format!("producer {producer}: {torn}"))
    }

    /// Picks a producer or consumer at random, without consumers that joined for a while.
    fn any(&mut self, role: Role) -> u16 {
        let count = match role {
            Role::Consumer => self.stand.consumers(),
            Role::Producer => self.args.producers,
        };
        let index = self.random.below(count.into());
        u16::try_from(index).expect("the index is below a 16-bit number")
    }
}

fn newest_segment(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "seg"))
        .max()
}
