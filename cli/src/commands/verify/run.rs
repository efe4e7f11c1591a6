//! One run: processes, records, faults in their order, then the judgement.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::faults::schedule;
use super::fleet::{Fleet, TICK};
use super::oracle::Teller;
use super::orders::Order;
use super::process::Board;
use super::random::{Random, mix};
use super::report::{Document, Injected, Transport};
use super::stand::{ANYWHERE, Scratch, Stand, WITH_SPOOL, stand};
use crate::args::{FaultChoice, VerifyArgs};
use crate::exit::{Code, Failure};
use crate::shutdown::Shutdown;

/// How long records keep coming around one fault.
const AROUND_A_FAULT: Duration = Duration::from_millis(1_200);

/// How long records keep coming at the end, and where there is no fault.
const AT_THE_END: Duration = Duration::from_millis(500);

/// How long the broker is away at the start.
const DOWN_AT_START: Duration = Duration::from_millis(1_500);

/// How long a process may take to say that it is ready.
const READY: Duration = Duration::from_secs(30);

/// One run.
pub(super) struct Run<'a> {
    pub(super) stand: Box<dyn Stand>,
    pub(super) board: Board,
    pub(super) random: Random,
    pub(super) plan: Plan,
    /// How many foreign chunks were made.
    pub(super) poisons: u64,
    fleet: Arc<Mutex<Fleet>>,
    args: &'a VerifyArgs,
    shutdown: &'a Shutdown,
    started: Instant,
    injected: Vec<Injected>,
    spool: Option<Scratch>,
}

/// What seed and flags decide.
#[derive(Debug)]
pub(super) struct Plan {
    /// In this order.
    schedule: Vec<FaultChoice>,
    down_at_start: bool,
    order_promised: bool,
    /// Records around each fault, and at the end.
    slice: u64,
    /// Records of one overflow.
    pub(super) burst: u64,
    producers: u16,
    pub(super) consumers: u16,
}

/// Gives records to producers while it lives.
struct Pump {
    ended: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().ok();
        }
    }
}

impl<'a> Run<'a> {
    /// Sets everything up; nothing runs yet but a private broker.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be, or cannot have a fault that was asked for.
    pub(super) fn new(
        args: &'a VerifyArgs,
        verbose: u8,
        shutdown: &'a Shutdown,
    ) -> Result<Self, Failure> {
        let stand = stand(args, args.producers)?;
        let faults = chosen(args, &*stand)?;
        let mut random = Random::new(mix(args.seed));
        let schedule = schedule(&faults, args.rounds, &mut random);
        let consumers = if stand.pairs() {
            args.producers
        } else {
            args.consumers
        };
        let slices = u64::try_from(schedule.len())
            .unwrap_or(u64::MAX)
            .saturating_add(1);
        let slice = args.records / slices;
        let alone = consumers == 1 && !faults.contains(&FaultChoice::Rebalance);
        let plan = Plan {
            order_promised: alone || stand.orders_competitors(),
            down_at_start: faults.contains(&FaultChoice::BrokerDownAtStart),
            schedule,
            slice,
            burst: (slice / 2).min(200_000).min(stand.window() / 4),
            producers: args.producers,
            consumers,
        };
        let board = Board::default();
        let spool = if args.spool {
            Some(Scratch::new()?)
        } else {
            None
        };
        let fleet = Fleet::new(
            args,
            board.clone(),
            (0..args.producers)
                .map(|it| stand.producer_uri(it))
                .collect(),
            (0..consumers).map(|it| stand.consumer_uri(it)).collect(),
            (
                stand.window(),
                spool.as_ref().map(|it| it.path().to_path_buf()),
            ),
            verbose,
        );
        Ok(Self {
            stand,
            board,
            random,
            plan,
            poisons: 0,
            fleet: Arc::new(Mutex::new(fleet)),
            args,
            shutdown,
            started: Instant::now(),
            injected: Vec::new(),
            spool,
        })
    }

    /// The folder with segments that a producer writes to.
    pub(super) fn folder(&self, producer: usize) -> Option<PathBuf> {
        let spool = self.spool.as_ref();
        spool.map_or_else(
            || self.stand.folder(producer),
            |spool| Some(spool.path().join(producer.to_string()).join("chunks")),
        )
    }

    /// The processes; records are not given out while this is held.
    pub(super) fn fleet(&self) -> MutexGuard<'_, Fleet> {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass, while producers go on.
    pub(super) fn pause(&self, time: Duration) {
        self.shutdown.wait_until(Instant::now() + time);
    }

    /// Runs to the end, and judges.
    ///
    /// # Errors
    ///
    /// A process or a fault cannot be made, or a signal came: there is no judgement then.
    pub(super) fn run(mut self) -> Result<Document, Failure> {
        self.begin()?;
        let pump = self.pump()?;
        let mut left = self.args.records;
        for fault in std::mem::take(&mut self.plan.schedule) {
            self.stand.prepare(fault)?;
            let mut planned = self.plan.slice;
            if fault == FaultChoice::Overflow {
                planned = planned.saturating_sub(self.plan.burst);
            }
            left = left.saturating_sub(self.plan.slice);
            self.fleet().plan(planned, AROUND_A_FAULT);
            let gap = Duration::from_millis(self.random.between(50, 400));
            self.pause(gap);
            self.note(fault)?;
            self.interrupted()?;
        }
        self.fleet().plan(left, AT_THE_END);
        self.drain()?;
        drop(pump);
        let mut violations = Vec::new();
        self.complete(&mut violations);
        let fresh_record_passed = self.fresh()?;
        self.end_consumers();
        self.interrupted()?;
        Ok(self.document(fresh_record_passed, violations))
    }

    fn begin(&mut self) -> Result<(), Failure> {
        if self.plan.down_at_start {
            // A mock is up from its beginning.
            self.stand.end(true).ok();
            let at = self.started.elapsed();
            self.fleet().start()?;
            self.pause(DOWN_AT_START);
            self.stand.start()?;
            self.injected.push(Injected {
                fault: FaultChoice::BrokerDownAtStart.name(),
                detail: "started after producers and consumers".to_owned(),
                at_seconds: seconds(at),
                seconds: seconds(self.started.elapsed().saturating_sub(at)),
            });
        } else {
            self.stand.start()?;
            self.fleet().start()?;
        }
        let (producers, consumers) = (self.plan.producers, self.plan.consumers);
        let ready = self.board.wait_for(Instant::now() + READY, |oracle| {
            let life = 0;
            (0..producers).all(|producer| oracle.is_ready(Teller::Producer { producer, life }))
                && (0..usize::from(consumers)).all(|it| oracle.is_ready(Teller::Reader(it)))
        });
        if ready {
            return Ok(());
        }
        Err(Failure::new(
            Code::Unavailable,
            format!(
                "a producer or consumer of {} does not start; -v shows why",
                self.args.to
            ),
        ))
    }

    fn pump(&self) -> Result<Pump, Failure> {
        let ended = Arc::new(AtomicBool::new(false));
        let (fleet, stop) = (Arc::clone(&self.fleet), Arc::clone(&ended));
        let work = move || {
            while !stop.load(Ordering::Acquire) {
                {
                    let mut fleet = fleet.lock().unwrap_or_else(PoisonError::into_inner);
                    fleet.look_after();
                    fleet.pump();
                }
                thread::park_timeout(TICK);
            }
        };
        let thread = thread::Builder::new()
            .name("baler-pump".to_owned())
            .spawn(work);
        let thread = thread.map_err(|error| {
            Failure::new(Code::Internal, format!("cannot start a thread: {error}"))
        })?;
        Ok(Pump {
            ended,
            thread: Some(thread),
        })
    }

    fn note(&mut self, fault: FaultChoice) -> Result<(), Failure> {
        let at = self.started.elapsed();
        let detail = self.inject(fault)?;
        let injected = Injected {
            fault: fault.name(),
            detail,
            at_seconds: seconds(at),
            seconds: seconds(self.started.elapsed().saturating_sub(at)),
        };
        tracing::info!(fault = injected.fault, detail = injected.detail, "injected");
        self.injected.push(injected);
        Ok(())
    }

    fn interrupted(&self) -> Result<(), Failure> {
        if self.shutdown.is_requested() {
            let message = "a signal came before the judgement";
            return Err(Failure::new(Code::Incomplete, message));
        }
        Ok(())
    }

    /// Waits until everything is given out, then ends all producers in good order.
    fn drain(&self) -> Result<(), Failure> {
        let by = Instant::now() + self.args.patience;
        while !self.fleet().is_given_out() {
            self.pause(TICK);
            self.interrupted()?;
            if Instant::now() > by {
                let message = "not all records could be given to producers in time";
                self.fleet().violations.push(message.to_owned());
                break;
            }
        }
        // Nobody looks after processes in between: they end because they are told to.
        let mut fleet = self.fleet();
        for number in 0..fleet.producers() {
            if let Some(process) = fleet.producer(number) {
                process.order(Order::Finish);
            }
        }
        for number in 0..fleet.producers() {
            fleet.end_producer(number, |_| {});
        }
        Ok(())
    }

    /// Waits until everything acknowledged has arrived.
    fn complete(&self, violations: &mut Vec<String>) {
        let by = Instant::now() + self.args.patience;
        loop {
            let soon = Instant::now() + TICK;
            if self.board.lock().is_complete() {
                return;
            }
            let known = self.board.lock().delivered();
            self.board
                .wait_for(soon, |oracle| oracle.delivered() != known);
            if Instant::now() > by {
                let oracle = self.board.lock();
                violations.push(format!(
                    "after {:?} {} of {} acknowledged records were delivered",
                    self.args.patience,
                    oracle.delivered(),
                    oracle.acknowledged(),
                ));
                return;
            }
            if self.shutdown.is_requested() {
                return;
            }
        }
    }

    /// Sends one record more by each producer; whether they arrive.
    fn fresh(&self) -> Result<bool, Failure> {
        let count = self.fleet().producers();
        let before = self.board.lock().delivered();
        for number in 0..count {
            self.fleet().revive_producer(number, &[])?;
            self.fleet().give_to(number, 1);
            if let Some(process) = self.fleet().producer(number) {
                process.order(Order::Finish);
            }
        }
        let wanted = before.saturating_add(u64::try_from(count).unwrap_or(0));
        let by = Instant::now() + self.args.patience;
        let passed = self
            .board
            .wait_for(by, |oracle| oracle.delivered() >= wanted);
        for number in 0..count {
            self.fleet().end_producer(number, |_| {});
        }
        Ok(passed)
    }

    fn end_consumers(&self) {
        let count = self.fleet().consumers();
        for number in 0..count {
            if let Some(process) = self.fleet().consumer(number) {
                process.order(Order::Finish);
            }
        }
        for number in 0..count {
            self.fleet().end_consumer(number, |_| {});
        }
    }

    fn document(&mut self, fresh_record_passed: bool, mut violations: Vec<String>) -> Document {
        violations.append(&mut self.fleet().violations);
        let mut faults = BTreeMap::new();
        for injected in &self.injected {
            let count: &mut u64 = faults.entry(injected.fault).or_default();
            *count = count.saturating_add(1);
        }
        let elapsed = self.started.elapsed();
        let findings = self.board.lock().judge();
        let mut document = Document {
            endpoint: shown(&self.args.to),
            seed: self.args.seed,
            held: false,
            records: self.args.records,
            producers: self.plan.producers,
            threads: self.args.threads,
            consumers: self.plan.consumers,
            offered: 0,
            acknowledged: 0,
            delivered: 0,
            missing: 0,
            spurious: 0,
            altered: 0,
            duplicates_within_reader: 0,
            duplicates_across_readers: 0,
            out_of_order: 0,
            order_promised: self.plan.order_promised,
            dropped: BTreeMap::new(),
            spooled: 0,
            in_doubt: 0,
            conserved: false,
            poisoned: 0,
            quarantined: 0,
            quarantine_errors: 0,
            transport: Transport::default(),
            faults,
            schedule: std::mem::take(&mut self.injected),
            fresh_record_passed,
            violations,
            seconds: seconds(elapsed),
            records_per_second: crate::output::per_second(findings.delivered, elapsed),
        };
        let quiet = document.violations.is_empty();
        document.take(findings);
        document.held &= quiet;
        document
    }
}

/// The faults that were asked for, each once, as the endpoint can have them.
fn chosen(args: &VerifyArgs, stand: &dyn Stand) -> Result<Vec<FaultChoice>, Failure> {
    let faults = ANYWHERE.iter().chain(stand.faults());
    let mut possible: BTreeSet<_> = faults.copied().collect();
    if args.spool {
        possible.extend(WITH_SPOOL);
    }
    if args.faults.contains(&FaultChoice::All) {
        return Ok(possible.into_iter().collect());
    }
    let wanted: BTreeSet<_> = args.faults.iter().copied().collect();
    for fault in &wanted {
        if !possible.contains(fault) {
            let names: Vec<_> = possible.iter().map(|it| it.name()).collect();
            return Err(Failure::new(
                Code::Configuration,
                format!(
                    "--faults {} does not go with --to {}, which can have {}",
                    fault.name(),
                    shown(&args.to),
                    names.join(", ")
                ),
            ));
        }
    }
    Ok(wanted.into_iter().collect())
}

/// The endpoint without its secrets; those that are set up here have none.
fn shown(to: &str) -> String {
    if to.contains("://") {
        crate::endpoint::shown(to)
    } else {
        to.to_owned()
    }
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e3).round() / 1e3
}
