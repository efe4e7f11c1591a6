//! From how many calls on each kind of probe finds a small slowdown.
//!
//! ```text
//! kinds x functions x slowdowns -> runs, each a process: a duet, or one version alone
//!   -> batches, from the records of the probes -> resampled tests -> rows -> table, JSON, chart
//! ```
//!
//! A duet calls both versions of the function in turns, in one process (Bulej et al., "Duet
//! Benchmarking", 2020): a disturbance affects both alike.

mod kind;
mod power;
mod row;
mod run;
mod trimmed;

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use baler_rig::clock::nanos;
use baler_rig::machine::Provenance;
use baler_rig::process;
use clap::Parser;

use crate::output::OutputArgs;
use crate::{Failure, Outcome};
use kind::{KINDS, Kind, find, work};
use row::{Group, Row, chart, table};
use run::{Run, measure};

/// The time limit of a run.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long the calls of a batch take, but at least one call. Most short batches are not interrupted
/// at all, and short turns average out slow disturbances.
const BATCH_US: usize = 100;

/// From how many calls on each kind of probe finds a small slowdown.
#[derive(Debug, Clone, Parser)]
#[command(name = "detect", version, max_term_width = 100)]
pub struct Args {
    /// Seed, and output of the rows.
    #[command(flatten)]
    pub output: OutputArgs,

    /// Measure these kinds of probes only, several separated by commas [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,

    /// How long a call of the function takes, in microseconds, several separated by commas
    #[arg(long, value_name = "US", value_delimiter = ',', default_value = "1,10,100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub functions: Vec<u32>,

    /// By how many percent the changed version is slower, several separated by commas; runs
    /// without a change are always measured
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "1,2,5,10", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub slowdowns: Vec<u32>,

    /// How long each version works in a run, in milliseconds [default: 500, with --quick 20]
    #[arg(long, value_name = "MS")]
    pub work: Option<NonZeroUsize>,

    /// How often to run each case, each time in a process of its own [default: 10, with --quick 2]
    #[arg(long, value_name = "R")]
    pub repetitions: Option<NonZeroUsize>,

    /// Make too few calls for meaningful figures, only to see that everything works
    #[arg(long)]
    pub quick: bool,
}

/// Measures the requested kinds and writes the results.
///
/// # Errors
///
/// A requested kind does not exist, or the rows cannot be written.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    // Before anything loads the machine.
    let provenance = Provenance::this();
    let rows = measure_all(args)?;
    let svg = chart(&rows)?;
    let others = [("svg", &*svg)];
    let text = table(&rows);
    Ok(Outcome {
        text: args
            .output
            .write("detect", &provenance, &rows, text, &others)?,
        is_right: rows.iter().all(|row| row.failure.is_none()),
    })
}

/// Carries out the parent's order, if this is a child process of `detect`; otherwise returns
/// `None`.
pub fn child() -> Option<Result<Outcome, Failure>> {
    process::run_order(measure)
}

fn measure_all(args: &Args) -> Result<Vec<Row>, Failure> {
    for name in &args.only {
        find(name)?;
    }
    let is_wanted =
        |kind: &&Kind| args.only.is_empty() || args.only.iter().any(|it| it == kind.name);
    let steps_per_us = steps_per_us();
    let default = if args.quick { 20 } else { 500 };
    let work_ms = args.work.map_or(default, NonZeroUsize::get);
    let default = if args.quick { 2 } else { 10 };
    let repetitions = args.repetitions.map_or(default, NonZeroUsize::get);
    let slowdowns = [&[0], args.slowdowns.as_slice()].concat();
    let mut groups = Vec::new();
    for kind in KINDS.iter().filter(is_wanted) {
        groups.extend(args.functions.iter().map(|function_us| Group {
            kind,
            function_us: *function_us,
            slowdowns: slowdowns.clone(),
        }));
    }
    let runs = |group: &Group| runs_of(group, work_ms, steps_per_us);
    let runs: Vec<Run> = groups.iter().flat_map(runs).collect();
    let measured = args.output.measured(&runs, repetitions, PATIENCE)?;
    let of_groups = groups
        .iter()
        .zip(measured.chunks(runs.len() / groups.len()));
    let rows = of_groups.flat_map(|(group, runs)| group.rows(runs, args.output.seed));
    Ok(rows.collect())
}

/// The runs of a group: the base version alone; then for each slowdown the changed version alone
/// and the duet.
fn runs_of(group: &Group, work_ms: usize, steps_per_us: u64) -> Vec<Run> {
    let us = usize::try_from(group.function_us).expect("it is small");
    let batch_calls = (BATCH_US / us).max(1);
    let run = |steps: Vec<u64>| Run {
        kind: group.kind.name.to_owned(),
        steps,
        batch_calls,
        batches: (work_ms * 1_000 / us / batch_calls).max(1),
    };
    // One percent is a whole number of steps.
    let percent = ((steps_per_us * u64::from(group.function_us) + 50) / 100).max(1);
    let steps = |slowdown: u32| percent * (100 + u64::from(slowdown));
    let mut runs = vec![run(vec![steps(0)])];
    for slowdown in &group.slowdowns {
        runs.push(run(vec![steps(*slowdown)]));
        runs.push(run(vec![steps(0), steps(*slowdown)]));
    }
    runs
}

/// How many steps of work this machine does in a microsecond when nothing interrupts it.
fn steps_per_us() -> u64 {
    const STEPS: u64 = 100_000;
    let time = || {
        let begin = Instant::now();
        black_box(work(black_box(STEPS)));
        begin.elapsed()
    };
    let best = (0..20).map(|_| time()).min().expect("there are some");
    STEPS * 1_000 / nanos(best).max(1)
}
