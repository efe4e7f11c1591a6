//! One run: processes, records, faults in their order, then the judgement.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use baler_common::transport::Order;
use serde_json::{Value, json};

use super::fleet::Fleet;
use super::messages::Role;
use super::report::Injected;
use super::stand::{Scratch, Stand, stand};
use crate::args::{FaultChoice, VerifyArgs};
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::output;
use crate::random::Random;
use crate::shutdown::Shutdown;

/// The number of ticks over which the records around one fault are given out: over a second.
const TICKS: u64 = 60;

/// How long the broker is away at the start.
const DOWN_AT_START: Duration = Duration::from_millis(1_500);

/// How long a process may take until it reports that it is ready.
const READY: Duration = Duration::from_secs(30);

/// The longest wait for consumers that have no broker, or no part of the medium.
const AWAY: Duration = Duration::from_secs(600);

/// Faults of processes, which need no control over the endpoint.
const ANYWHERE: &[FaultChoice] = &[
    FaultChoice::ProducerTerm,
    FaultChoice::ProducerKill,
    FaultChoice::ConsumerTerm,
    FaultChoice::ConsumerKill,
    FaultChoice::ConsumerSlow,
    FaultChoice::Poison,
    FaultChoice::Overflow,
];

/// Faults of disks, where producers have a spool.
const WITH_SPOOL: &[FaultChoice] = &[FaultChoice::DiskFull, FaultChoice::TornWrite];

/// One run.
pub(super) struct Run<'a> {
    pub(super) args: &'a VerifyArgs,
    pub(super) stand: Stand,
    pub(super) fleet: Fleet<'a>,
    pub(super) random: Random,
    /// The number of pieces of foreign bytes that were made.
    pub(super) poisons: u64,
    /// The number of records around each fault, and at the end.
    slice: u64,
    spool: Option<Scratch>,
    pub(super) shutdown: &'a Shutdown,
    started: Instant,
    injected: Vec<Injected>,
}

/// Runs the verification, judges it, and prints the result.
pub(in crate::commands) fn run(
    args: &VerifyArgs,
    verbose: u8,
    shutdown: &Shutdown,
) -> Result<Code, Failure> {
    let stand = stand(args)?;
    let mut random = Random::new(args.seed);
    let faults = chosen(args, &stand)?;
    let schedule = schedule(&faults, args.rounds, &mut random);
    let slices = schedule.len() as u64 + 1;
    let spool = args.spool.then(Scratch::new).transpose()?;
    let folder = spool.as_ref().map(|it| it.path().to_path_buf());
    let run = Run {
        fleet: Fleet::new(args, &stand, folder, verbose, shutdown),
        args,
        stand,
        random,
        poisons: 0,
        slice: args.records / slices,
        spool,
        shutdown,
        started: Instant::now(),
        injected: Vec::new(),
    };
    let (document, held) = run.judged(&faults, schedule)?;
    let verdict = match held {
        true => "the promise held",
        false => "THE PROMISE WAS BROKEN",
    };
    output::result(args.format, &document, || text(&document, verdict))?;
    Ok(match held {
        true => Code::Done,
        false => Code::Broken,
    })
}

/// Formats the figures, the faults in their order, and the verdict.
fn text(document: &Value, verdict: &str) -> String {
    let mut figures = document.clone();
    output::take(&mut figures, "held");
    output::take(&mut figures, "faults");
    let schedule = output::take(&mut figures, "schedule");
    let mut rows = output::figures_of(&figures);
    let mut name = "faults";
    for injected in schedule.as_array().into_iter().flatten() {
        let [fault, detail] = ["fault", "detail"].map(|name| output::text_of(injected, name));
        let said = format!(
            "{fault} at {} s, for {} s: {detail}",
            injected["at_seconds"], injected["seconds"]
        );
        rows.push((std::mem::take(&mut name).to_owned(), said));
    }
    rows.push(("verdict".to_owned(), verdict.to_owned()));
    output::two_columns(&rows)
}

/// Returns the chosen faults, each once. The endpoint must support all of them.
fn chosen(args: &VerifyArgs, stand: &Stand) -> Result<BTreeSet<FaultChoice>, Failure> {
    let mut possible: BTreeSet<_> = ANYWHERE.iter().chain(&stand.faults).copied().collect();
    if args.spool {
        possible.extend(WITH_SPOOL);
    }
    if args.faults.contains(&FaultChoice::All) {
        return Ok(possible);
    }
    let wanted: BTreeSet<_> = args.faults.iter().copied().collect();
    if let Some(fault) = wanted.difference(&possible).next() {
        let names: Vec<_> = possible.iter().map(|it| it.name()).collect();
        return Err(Failure::configuration(format!(
            "--faults {} does not go with --to {}, which can have {}",
            fault.name(),
            shown(&args.to),
            names.join(", ")
        )));
    }
    Ok(wanted)
}

/// Returns each fault once a round, in an order that the seed decides. Faults of the start are left
/// out.
fn schedule(faults: &BTreeSet<FaultChoice>, rounds: u16, random: &mut Random) -> Vec<FaultChoice> {
    let later = faults.iter().copied();
    let mut round: Vec<_> = later
        .filter(|it| *it != FaultChoice::BrokerDownAtStart)
        .collect();
    let mut schedule = Vec::new();
    for _ in 0..rounds {
        random.shuffle(&mut round);
        schedule.extend(&round);
    }
    schedule
}

impl Run<'_> {
    /// Returns the number of records that one overflow makes.
    pub(super) fn burst(&self) -> u64 {
        let max = (self.stand.window / 4).min(200_000);
        (self.slice / 2).clamp(1, max)
    }

    /// Returns the folder with segments that a producer writes to.
    pub(super) fn folder(&self, producer: u16) -> Option<PathBuf> {
        let name = producer.to_string();
        match (&self.spool, &self.stand.folders) {
            (Some(spool), _) => Some(spool.path().join(name).join("chunks")),
            (None, folders) => folders.as_ref().map(|it| it.path().join(name)),
        }
    }

    /// Runs to the end, and judges.
    fn judged(
        mut self,
        faults: &BTreeSet<FaultChoice>,
        schedule: Vec<FaultChoice>,
    ) -> Result<(Value, bool), Failure> {
        let alone = self.stand.consumers() == 1 && !faults.contains(&FaultChoice::Rebalance);
        let order_promised = self.orders_records()? && (alone || self.stand.orders_competitors);
        self.begin(faults.contains(&FaultChoice::BrokerDownAtStart))?;
        let mut left = self.args.records;
        for fault in schedule {
            if let Some(medium) = &mut self.stand.medium {
                medium.prepare(fault)?;
            }
            let overflow = match fault {
                FaultChoice::Overflow => self.burst().min(self.slice),
                _ => 0,
            };
            left -= self.slice;
            self.fleet.plan(self.slice - overflow, TICKS);
            let gap = Duration::from_millis(self.random.between(50, 400));
            self.fleet.pause(gap);
            let began = self.started.elapsed();
            let detail = self.inject(fault)?;
            self.injected(fault, detail, began);
            self.interrupted()?;
        }
        self.fleet.plan(left, TICKS / 2);
        self.drain()?;
        let fresh_record_passed = self.pass_fresh_records()?;
        self.fleet.finish(Role::Consumer);
        self.interrupted()?;
        Ok(self.document(fresh_record_passed, order_promised))
    }

    /// Whether the medium keeps the order of a lane.
    fn orders_records(&self) -> Result<bool, Failure> {
        let writer = endpoint::writer(&self.stand.producer_uris[0])?.writer;
        Ok(writer.capability().order == Order::PerLane)
    }

    /// Starts the broker, every consumer, then every producer.
    fn begin(&mut self, down_at_start: bool) -> Result<(), Failure> {
        if down_at_start {
            // Kafka's mock is running from its beginning, so it must be stopped.
            self.with_medium(|medium| medium.end(true)).ok();
        } else {
            self.start_broker()?;
        }
        let began = self.started.elapsed();
        for number in 0..self.stand.consumers() {
            self.fleet.start(Role::Consumer, number, &[])?;
        }
        for number in 0..self.args.producers {
            self.fleet.start(Role::Producer, number, &[])?;
        }
        if down_at_start {
            self.fleet.pause(DOWN_AT_START);
            self.start_broker()?;
            let detail = "started after producers and consumers".to_owned();
            self.injected(FaultChoice::BrokerDownAtStart, detail, began);
        }
        let ready = self.fleet.run_until(Instant::now() + READY, |fleet| {
            [Role::Consumer, Role::Producer].into_iter().all(|role| {
                let mut numbers = 0..fleet.count(role);
                numbers.all(|number| fleet.oracle.is_ready(fleet.life(role, number)))
            })
        });
        self.interrupted()?;
        if ready {
            return Ok(());
        }
        let to = shown(&self.args.to);
        let message = format!("a producer or consumer of {to} does not start; -v shows why");
        Err(Failure::new(Code::Unavailable, message))
    }

    /// Starts the stand's own broker.
    fn start_broker(&mut self) -> Result<(), Failure> {
        match self.stand.medium {
            Some(_) => self.with_medium(|medium| medium.start()),
            None => Ok(()),
        }
    }

    /// Waits until all records are given out, ends all producers cleanly, and waits until all
    /// acknowledged records have arrived.
    fn drain(&mut self) -> Result<(), Failure> {
        if !self.wait_for(|fleet| fleet.planned == 0) {
            let message = "not all records could be given to producers in time";
            self.fleet.violations.push(message.to_owned());
        }
        self.interrupted()?;
        self.fleet.finish(Role::Producer);
        if !self.wait_for(|fleet| fleet.oracle.is_complete()) {
            let oracle = &self.fleet.oracle;
            let message = format!(
                "{} of {} acknowledged records were delivered, then nothing more came for {:?}",
                oracle.delivered(),
                oracle.acknowledged(),
                self.args.patience,
            );
            self.fleet.violations.push(message);
        }
        self.interrupted()
    }

    /// Sends one more record from each producer. Returns whether they arrive.
    fn pass_fresh_records(&mut self) -> Result<bool, Failure> {
        let producers = 0..self.fleet.count(Role::Producer);
        for number in producers.clone() {
            self.fleet.start(Role::Producer, number, &[])?;
            self.fleet.give_to(number, 1);
        }
        self.fleet.finish(Role::Producer);
        let passed = self.wait_for(|fleet| {
            let mut lives = producers.clone().map(|it| fleet.life(Role::Producer, it));
            lives.all(|life| fleet.oracle.has_arrived(life))
        });
        // Copies and spurious records may still follow. They are judged, too.
        self.wait_for(|fleet| fleet.oracle.is_at_end());
        Ok(passed)
    }

    /// Waits until a condition holds. Returns whether it does. Gives up when no chunk moved for
    /// `--patience` while every consumer had its broker and its part of the medium.
    fn wait_for(&mut self, mut holds: impl FnMut(&mut Fleet<'_>) -> bool) -> bool {
        let start = Instant::now();
        let (mut moved, mut since) = (self.fleet.oracle.moved(), start);
        let patience = self.args.patience;
        let mut held = false;
        self.fleet.run_until(start + AWAY * 100, |fleet| {
            held = holds(fleet);
            let now = Instant::now();
            let is_away = fleet.oracle.is_cut_off() && now.duration_since(start) < AWAY;
            if fleet.oracle.moved() != moved || is_away {
                (moved, since) = (fleet.oracle.moved(), now);
            }
            held || now.duration_since(since) > patience
        });
        held
    }

    /// Records a fault that has just ended.
    fn injected(&mut self, fault: FaultChoice, detail: String, began: Duration) {
        let injected = Injected {
            fault: fault.name(),
            detail,
            at_seconds: output::seconds(began),
            seconds: output::seconds(self.started.elapsed() - began),
        };
        tracing::info!(fault = injected.fault, detail = injected.detail, "injected");
        self.injected.push(injected);
    }

    fn interrupted(&self) -> Result<(), Failure> {
        if self.shutdown.is_requested() {
            let message = "a signal came before the judgement";
            return Err(Failure::new(Code::Incomplete, message));
        }
        Ok(())
    }

    /// Returns the findings as JSON, and whether the promise held. The names are part of the
    /// program's interface.
    fn document(self, fresh_record_passed: bool, order_promised: bool) -> (Value, bool) {
        let mut faults = BTreeMap::<_, u64>::new();
        for injected in &self.injected {
            *faults.entry(&injected.fault).or_default() += 1;
        }
        let elapsed = self.started.elapsed();
        let mut findings = self.fleet.oracle.judge(order_promised);
        let violations = &self.fleet.violations;
        let held = findings.held() && fresh_record_passed && violations.is_empty();
        findings.violations.extend(violations.iter().cloned());
        let mut document = json!({
            "endpoint": shown(&self.args.to),
            "seed": self.args.seed,
            "held": held,
            "records": self.args.records,
            "producers": self.args.producers,
            "threads": self.args.threads,
            "consumers": self.stand.consumers(),
        });
        output::extend(&mut document, &json!(findings));
        let more = json!({
            "faults": faults,
            "schedule": self.injected,
            "fresh_record_passed": fresh_record_passed,
            "seconds": output::seconds(elapsed),
            "records_per_second": output::per_second(findings.delivered, elapsed),
        });
        output::extend(&mut document, &more);
        (document, held)
    }
}

/// Returns the endpoint without its secrets. The endpoints that are set up here have none.
fn shown(to: &str) -> String {
    if to.contains("://") {
        endpoint::shown(to)
    } else {
        to.to_owned()
    }
}

#[cfg(test)]
mod tests;
