//! Remote switching of probes: the time of a verdict, and of a change of the patterns.
//!
//! [`Args`] -> cases -> each in every round in a process of its own (`measure`) -> [`Row`] -> table or
//! JSON.

mod measure;

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use baler_rig::harness::Runs;
use baler_rig::machine::Provenance;
use baler_rig::process;
use baler_rig::report::{self, Column, short_or_dash};
use baler_rig::statistics::Interval;
use clap::Parser;
use serde::Serialize;

use crate::output::OutputArgs;
use crate::{Failure, Outcome};
pub use measure::Case;
use measure::{Sample, measure};

/// The time limit of a process.
const PATIENCE: Duration = Duration::from_secs(120);

/// What switching probes from afar costs: verdicts and changes of patterns.
#[derive(Debug, Clone, Parser)]
#[command(name = "verdicts", version, max_term_width = 100)]
pub struct Args {
    /// Seed, and output of the rows.
    #[command(flatten)]
    pub output: OutputArgs,

    /// Patterns of the bridge, several numbers separated by commas
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,100,1000"
    )]
    pub patterns: Vec<NonZeroU32>,

    /// Probes of the program, several numbers separated by commas
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "100,10000"
    )]
    pub probes: Vec<NonZeroU32>,

    /// How often to measure each row, each time in a process of its own
    #[arg(long, value_name = "R", default_value = "10")]
    pub repetitions: NonZeroUsize,
}

/// The figures of a case, over the repetitions. JSON uses the same names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// The number of processes.
    pub repetitions: usize,
    /// All probes asked at once: microseconds for each verdict.
    pub verdict_us: Option<Interval>,
    /// One probe asked: microseconds until the answer.
    pub answer_us: Option<Interval>,
    /// A pattern is added that switches all probes: microseconds until the last one is switched.
    pub update_us: Option<Interval>,
    /// The patterns are replaced, and all probes switched: microseconds until the last one is.
    pub replace_us: Option<Interval>,
    /// The reason why there are no more figures, if something failed.
    pub failure: Option<String>,
}

impl Row {
    fn new(case: Case, runs: &Runs<Sample>) -> Self {
        Self {
            case,
            repetitions: runs.samples.len(),
            verdict_us: runs.interval(|it| it.verdict_us),
            answer_us: runs.interval(|it| it.answer_us),
            update_us: runs.interval(|it| it.update_us),
            replace_us: runs.interval(|it| it.replace_us),
            failure: runs.failure.as_ref().map(ToString::to_string),
        }
    }
}

const COLUMNS: &[Column<Row>] = &[
    Column::number("patterns", |row| row.case.patterns.to_string()),
    Column::number("probes", |row| row.case.probes.to_string()),
    Column::number("verdict µs", |row| mean(row.verdict_us)),
    Column::number("±95 %", |row| margin(row.verdict_us)),
    Column::number("answer µs", |row| mean(row.answer_us)),
    Column::number("±95 %", |row| margin(row.answer_us)),
    Column::number("update µs", |row| mean(row.update_us)),
    Column::number("±95 %", |row| margin(row.update_us)),
    Column::number("replace µs", |row| mean(row.replace_us)),
    Column::number("±95 %", |row| margin(row.replace_us)),
];

fn mean(interval: Option<Interval>) -> String {
    short_or_dash(interval.map(|it| it.mean))
}

fn margin(interval: Option<Interval>) -> String {
    short_or_dash(interval.map(|it| it.margin()))
}

/// Measures and writes the results.
///
/// # Errors
///
/// The rows cannot be written.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    // Before anything loads the machine.
    let provenance = Provenance::this();
    let mut cases = Vec::new();
    for patterns in &args.patterns {
        cases.extend(args.probes.iter().map(|probes| Case {
            patterns: patterns.get(),
            probes: probes.get(),
        }));
    }
    let output = &args.output;
    let all = output.measured(&cases, args.repetitions.get(), PATIENCE)?;
    let rows = cases.iter().zip(&all);
    let rows: Vec<Row> = rows.map(|(case, runs)| Row::new(*case, runs)).collect();
    let mut text = report::table(&rows, COLUMNS);
    let failures = rows.iter().filter_map(|row| row.failure.as_ref());
    failures.for_each(|failure| text.push_str(&format!("\n{failure}\n")));
    Ok(Outcome {
        text: output.write("verdicts", &provenance, &rows, text, &[])?,
        is_right: rows.iter().all(|row| row.failure.is_none()),
    })
}

/// Measures a case, if this is a child process of `verdicts`; otherwise returns `None`.
pub fn child() -> Option<Result<Outcome, Failure>> {
    process::run_order(measure)
}
