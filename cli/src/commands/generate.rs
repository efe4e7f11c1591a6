//! `baler generate`: synthetic records at a rate, through the monitoring controller.

use std::thread;
use std::time::{Duration, Instant};

use baler_rig::workload::{Executions, Workload};
use serde_json::json;

use crate::args::GenerateArgs;
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::observe::Observation;
use crate::output::{self, Progress};
use crate::shipping::Shipper;
use crate::shutdown::Shutdown;

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(100);

/// Emits the records, delivers them, and reports on them.
pub(super) fn run(args: &GenerateArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let writer = endpoint::spooled_writer(&args.to, &args.spool)?;
    let observation = Observation::start(&args.observe, "generate", shutdown, quiet)?;
    let shipper = Shipper::start(&args.shipping, writer, false, &observation)?;
    let progress = Progress::bar(args.records, quiet);
    let behind = emit_all(args, &shipper, shutdown, &progress)?;
    progress.clear();
    // The names are part of the program's interface.
    let mut document = json!({
        "workload": "operations",
        "seed": args.seed,
        "threads": args.threads,
        "records": args.records,
    });
    if let Some(rate) = args.rate {
        output::insert(&mut document, "rate", rate);
        let behind = behind.as_secs_f64();
        output::insert(&mut document, "most_behind_seconds", behind);
    }
    let (report, code) = shipper.conclude(observation, args.format, document)?;
    // No other figure has the records that were never emitted because of a signal.
    if code == Code::Done && report.stats().emitted < args.records {
        return Ok(Code::Incomplete);
    }
    Ok(code)
}

/// Runs the emitting threads to their end. Returns the longest delay of a record.
fn emit_all(
    args: &GenerateArgs,
    shipper: &Shipper,
    shutdown: &Shutdown,
    progress: &Progress,
) -> Result<Duration, Failure> {
    let threads = args.threads.get() as u64;
    let start = Instant::now();
    thread::scope(|scope| {
        let mut emitters = Vec::new();
        for number in 0..threads {
            let index = u32::try_from(number).expect("a process has fewer threads");
            let emitter = Emitter {
                workload: Workload::of_emitter(args.seed, index),
                // The first threads share the remainder.
                records: args.records / threads + u64::from(number < args.records % threads),
                rate: args.rate,
                start,
                number,
                threads,
            };
            let name = format!("baler-emit-{number}");
            let thread = thread::Builder::new().name(name);
            let emitter = thread.spawn_scoped(scope, || emitter.run(shipper, shutdown));
            emitters.push(emitter.map_err(Failure::thread)?);
        }
        // While the emitters run, only the controller's counts show their progress.
        while emitters.iter().any(|emitter| !emitter.is_finished()) {
            let emitted = shipper.controller.stats().emitted;
            progress.show(emitted, || format!("{} records", output::number(emitted)));
            if shutdown.wait_until(Instant::now() + TICK) {
                break;
            }
        }
        let mut most_behind = Duration::ZERO;
        for emitter in emitters {
            most_behind = most_behind.max(emitter.join().map_err(Failure::panicked)?);
        }
        Ok(most_behind)
    })
}

/// One thread's share of the load.
struct Emitter {
    workload: Workload,
    records: u64,
    /// The rate in records a second of all threads. Without it, they emit as fast as possible.
    rate: Option<f64>,
    start: Instant,
    number: u64,
    threads: u64,
}

impl Emitter {
    /// Returns the time when this thread's record at this position is due.
    ///
    /// The times are absolute (open loop): after a pause of the medium, the load catches up, and
    /// the delay shows.
    fn due(&self, position: u64, rate: f64) -> Instant {
        // It is below the number of the records of all threads.
        let ordinal = position * self.threads + self.number;
        #[expect(
            clippy::cast_precision_loss,
            reason = "exact for the first 2^53 records"
        )]
        let seconds = ordinal as f64 / rate;
        // A time beyond the clock's range is never due.
        let after = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        self.start
            .checked_add(after)
            .unwrap_or_else(|| self.start + Duration::from_secs(u64::from(u32::MAX)))
    }

    /// Emits its share of records, or stops early after a shutdown request. Returns the longest
    /// delay.
    fn run(mut self, shipper: &Shipper, shutdown: &Shutdown) -> Duration {
        let mut executions = Executions::new(self.workload.names());
        let mut most_behind = Duration::ZERO;
        for position in 0..self.records {
            if let Some(rate) = self.rate {
                let due = self.due(position, rate);
                match Instant::now().checked_duration_since(due) {
                    Some(behind) => most_behind = most_behind.max(behind),
                    None if shutdown.wait_until(due) => break,
                    None => {}
                }
            }
            if shipper.should_stop() {
                break;
            }
            let call = self.workload.next().expect("a workload never ends");
            // The controller counts a record that it refuses, with the reason.
            shipper.controller.emit(executions.of(&call));
        }
        most_behind
    }
}
