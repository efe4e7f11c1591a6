//! One run: processes, records, faults in their order, then the judgement.

mod ending;
mod plan;
mod pump;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plan::Plan;
use pump::Pump;

use super::fleet::{Flags, Fleet};
use super::oracle::Teller;
use super::process::Board;
use super::random::{Random, mix};
use super::report::{Document, Injected};
use super::stand::{Scratch, Stand, stand};
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
        let stand = stand(args)?;
        let mut random = Random::new(mix(args.seed));
        let plan = Plan::new(args, &*stand, &mut random)?;
        let board = Board::default();
        let spool = if args.spool {
            Some(Scratch::new()?)
        } else {
            None
        };
        let flags = Flags::new(
            args,
            (0..plan.producers)
                .map(|it| stand.producer_uri(it))
                .collect(),
            (0..plan.consumers)
                .map(|it| stand.consumer_uri(it))
                .collect(),
            spool.as_ref().map(|it| it.path().to_path_buf()),
            verbose,
        );
        let fleet = Fleet::new(flags, board.clone(), stand.window());
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
        let pump = Pump::start(Arc::clone(&self.fleet))?;
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
            let at = self.started.elapsed();
            let detail = self.inject(fault)?;
            self.note(fault, detail, at);
            self.interrupted()?;
        }
        self.fleet().plan(left, AT_THE_END);
        self.drain()?;
        drop(pump);
        let mut violations = Vec::new();
        self.complete(&mut violations);
        let fresh_record_passed = self.fresh()?;
        self.fleet().finish_consumers();
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
            let detail = "started after producers and consumers".to_owned();
            self.note(FaultChoice::BrokerDownAtStart, detail, at);
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
                shown(&self.args.to)
            ),
        ))
    }

    /// Notes a fault that was over just now.
    fn note(&mut self, fault: FaultChoice, detail: String, at: Duration) {
        let injected = Injected {
            fault: fault.name(),
            detail,
            at_seconds: seconds(at),
            seconds: seconds(self.started.elapsed().saturating_sub(at)),
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

    fn document(&mut self, fresh_record_passed: bool, mut violations: Vec<String>) -> Document {
        violations.append(&mut self.fleet().violations);
        let mut faults = BTreeMap::new();
        for injected in &self.injected {
            let count: &mut u64 = faults.entry(injected.fault).or_default();
            *count = count.saturating_add(1);
        }
        let elapsed = self.started.elapsed();
        let mut findings = self.board.lock().judge(self.plan.order_promised);
        let held = findings.held() && fresh_record_passed && violations.is_empty();
        violations.append(&mut findings.violations);
        findings.violations = violations;
        Document {
            endpoint: shown(&self.args.to),
            seed: self.args.seed,
            held,
            records: self.args.records,
            producers: self.plan.producers,
            threads: self.args.threads,
            consumers: self.plan.consumers,
            faults,
            schedule: std::mem::take(&mut self.injected),
            fresh_record_passed,
            seconds: seconds(elapsed),
            records_per_second: crate::output::per_second(findings.delivered, elapsed),
            findings,
        }
    }
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
