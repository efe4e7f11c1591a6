//! The experiment of F. Lange, "Measure Java Performance – Sampling or Instrumentation?" (2011),
//! with calls whose true time is known.
//!
//! ```text
//! demos x agents -> runs, each a process: calls of known length under an agent
//!   -> the agent's times beside the true ones, and the parts of the wall time -> rows -> tables, JSON
//! ```

mod demo;
mod hybrid;
mod measure;
mod row;

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use baler_rig::machine::Provenance;
use baler_rig::process;
use clap::Parser;

use crate::output::OutputArgs;
use crate::{Failure, Outcome};
use measure::{Agent, Case, measure};
use row::{MASS, MIXED, Row, lines, table_of_balances, table_of_errors};

/// The time limit of a run.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a sampler shows of known calls, and what probes show.
#[derive(Debug, Clone, Parser)]
#[command(name = "sampling", version, max_term_width = 100)]
pub struct Args {
    /// Seed, and output of the rows.
    #[command(flatten)]
    pub output: OutputArgs,

    /// Calls of the mass demo
    #[arg(long, value_name = "N", default_value = "100000000")]
    pub mass: NonZeroU64,

    /// How often the sampler looks, in milliseconds, several separated by commas
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "1,10,100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub intervals: Vec<u32>,

    /// How often to run each demo with each agent, each time in a process of its own
    #[arg(long, value_name = "R", default_value = "10")]
    pub repetitions: NonZeroUsize,

    /// Instead, run the shop of `baler demo` under hybrid monitoring: at full load, at a tenth of it,
    /// and at full load again, this number of seconds each, and then without monitoring
    #[arg(long, value_name = "SECONDS")]
    pub hybrid: Option<NonZeroU64>,

    /// With --hybrid: the budget of monitoring, in thousandths of the program's CPU time
    #[arg(long, value_name = "N", default_value_t = 10, requires = "hybrid")]
    pub budget_per_mille: u32,
}

/// Runs the demos with all agents and writes the results.
///
/// # Errors
///
/// The rows cannot be written.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    // Before anything loads the machine.
    let provenance = Provenance::this();
    let output = &args.output;
    if let Some(seconds) = args.hybrid {
        let rows = hybrid::measure(seconds, args.budget_per_mille)?;
        let text = hybrid::table(&rows);
        return Ok(Outcome {
            text: output.write("hybrid", &provenance, &rows, text, &[])?,
            is_right: true,
        });
    }
    let cases = cases(args);
    let all = output.measured(&cases, args.repetitions.get(), PATIENCE)?;
    let mut text = String::new();
    let mut rows = Vec::new();
    for (case, runs) in cases.iter().zip(&all) {
        if let Some(first) = runs.samples.first() {
            text += &format!("# {}\n{}\n", case.agent.name(), lines(case, first));
        }
        rows.push(Row::new(case, runs));
    }
    for demo in [MIXED, MASS] {
        let table = table_of_errors(&rows, demo);
        text += &format!("Errors of the times in the {demo} demo\n{table}\n");
    }
    let table = table_of_balances(&rows);
    text += "Parts of the wall time in ms; what runs beside the calls, on another core, lowers `rest`\n";
    text += &table;
    let failures = rows.iter().filter_map(|row| row.failure.as_ref());
    failures.for_each(|failure| text.push_str(&format!("\n{failure}\n")));
    Ok(Outcome {
        text: output.write("sampling", &provenance, &rows, text, &[])?,
        is_right: rows.iter().all(|row| row.failure.is_none()),
    })
}

/// Carries out the parent's order, if this is a child process of `sampling`; otherwise returns
/// `None`.
pub fn child() -> Option<Result<Outcome, Failure>> {
    process::run_order(measure)
}

fn cases(args: &Args) -> Vec<Case> {
    let mut cases = Vec::new();
    for mass in [None, Some(args.mass.get())] {
        let mut push = |agent, interval_ms| {
            cases.push(Case {
                mass,
                agent,
                interval_ms,
            });
        };
        for agent in [Agent::Plain, Agent::Operation, Agent::Aggregated] {
            push(agent, None);
        }
        for agent in [Agent::Fixed, Agent::Jittered] {
            args.intervals.iter().for_each(|ms| push(agent, Some(*ms)));
        }
    }
    cases
}
