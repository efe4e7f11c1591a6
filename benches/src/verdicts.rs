//! Remote switching of probes: the time of a verdict, and of a change of the patterns.
//!
//! [`Args`] -> cases -> each in every round in a process of its own (`measure`) -> [`Row`] -> table or
//! JSON.

mod measure;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use baler_rig::harness::{Format, Results, Rounds, Runs, in_rounds, on_terminal};
use baler_rig::machine::Provenance;
use baler_rig::process::{self, CHILD, Child};
use baler_rig::report::{self, Column, short_or_dash};
use baler_rig::statistics::Interval;
use clap::Parser;
use serde::Serialize;

use crate::{Failure, Outcome};
pub use measure::Case;
use measure::{Sample, measure};

/// The time limit of a process.
const PATIENCE: Duration = Duration::from_secs(120);

/// What switching probes from afar costs: verdicts and changes of patterns.
#[derive(Debug, Clone, Parser)]
#[command(name = "verdicts", version, max_term_width = 100)]
pub struct Args {
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

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

    /// In which order to measure
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Also write rows and table, with machine, command and commit, into this folder
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
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
        let of = |figure: fn(&Sample) -> f64| {
            let values: Vec<f64> = runs.samples.iter().map(figure).collect();
            Interval::of(&values)
        };
        Self {
            case,
            repetitions: runs.samples.len(),
            verdict_us: of(|it| it.verdict_us),
            answer_us: of(|it| it.answer_us),
            update_us: of(|it| it.update_us),
            replace_us: of(|it| it.replace_us),
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
    let rounds = Rounds {
        repetitions: args.repetitions.get(),
        seed: args.seed,
        finished: BTreeMap::new(),
    };
    let all = in_rounds(&cases, rounds, &mut on_terminal(), |_, case, go_on| {
        Child::answer_to(&[CHILD], case, PATIENCE, go_on)
    })?;
    let rows = cases.iter().zip(&all);
    let rows: Vec<Row> = rows.map(|(case, runs)| Row::new(*case, runs)).collect();
    let results = Results {
        name: "verdicts",
        provenance: &provenance,
        rows: &rows,
    };
    let mut text = report::table(&rows, COLUMNS);
    let failures = rows.iter().filter_map(|row| row.failure.as_ref());
    failures.for_each(|failure| text.push_str(&format!("\n{failure}\n")));
    let kept = args.results.as_deref().map(|folder| (folder, &[][..]));
    Ok(Outcome {
        text: results.write(args.format, text, kept)?,
        is_right: rows.iter().all(|row| row.failure.is_none()),
    })
}

/// Measures a case, if this is a child process of `verdicts`; otherwise returns `None`.
pub fn child() -> Option<Result<Outcome, Failure>> {
    process::run_order(measure)
}
