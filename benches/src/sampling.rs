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

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use baler_rig::harness::{Format, Results, Rounds, in_rounds, on_terminal};
use baler_rig::machine::Provenance;
use baler_rig::process::{self, CHILD, Child};
use clap::Parser;

use crate::{Failure, Outcome};
use measure::{Agent, Case, measure};
use row::{MASS, MIXED, Row, lines, table_of_balances, table_of_errors};

/// The time limit of a run.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a sampler shows of known calls, and what probes show.
#[derive(Debug, Clone, Parser)]
#[command(name = "sampling", version, max_term_width = 100)]
pub struct Args {
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

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

    /// In which order to measure
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Also write rows and tables, with machine, command and commit, into this folder
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
}

/// Runs the demos with all agents and writes the results.
///
/// # Errors
///
/// The rows cannot be written.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    // Before anything loads the machine.
    let provenance = Provenance::this();
    if let Some(seconds) = args.hybrid {
        let rows = hybrid::measure(seconds, args.budget_per_mille)?;
        let results = Results {
            name: "hybrid",
            provenance: &provenance,
            rows: &rows,
        };
        let kept = args.results.as_deref().map(|folder| (folder, &[][..]));
        return Ok(Outcome {
            text: results.write(args.format, hybrid::table(&rows), kept)?,
            is_right: true,
        });
    }
    let cases = cases(args);
    let rounds = Rounds {
        repetitions: args.repetitions.get(),
        seed: args.seed,
        finished: BTreeMap::new(),
    };
    let all = in_rounds(&cases, rounds, &mut on_terminal(), |_, case, go_on| {
        Child::answer_to(&[CHILD], case, PATIENCE, go_on)
    })?;
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
    let results = Results {
        name: "sampling",
        provenance: &provenance,
        rows: &rows,
    };
    let kept = args.results.as_deref().map(|folder| (folder, &[][..]));
    Ok(Outcome {
        text: results.write(args.format, text, kept)?,
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
