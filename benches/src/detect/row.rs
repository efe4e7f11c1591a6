//! The figures of a kind, a function, a slowdown and a design, from its runs.

use baler_rig::chart::{self, Bar};
use baler_rig::harness::Runs;
use baler_rig::report::{self, Column, short, short_or_dash};
use baler_rig::statistics::Distribution;
use baler_rig::workload::Random;
use serde::Serialize;

use super::kind::Kind;
use super::power::{Compared, Needed, Trials};
use super::run::Measured;
use super::trimmed::count;
use crate::Failure;

/// The quartiles of a normal distribution are this many standard deviations apart.
const QUARTILES: f64 = 1.349;

/// The slowdown that the chart shows, if it was measured.
const CHARTED_PERCENT: u32 = 2;

/// How versions are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Design {
    /// In turns, in one process.
    Duet,
    /// Each in a process of its own.
    Separate,
}

impl Design {
    fn name(self) -> &'static str {
        match self {
            Self::Duet => "duet",
            Self::Separate => "separate",
        }
    }
}

/// The figures of a case. JSON uses the same names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// The kind of probe.
    pub(super) kind: &'static str,
    /// The intended time of a call of the base version.
    pub(super) function_us: u32,
    /// The median of its measured time.
    pub(super) base_ns: Option<f64>,
    /// By how much more the changed version works.
    pub(super) slowdown_percent: u32,
    /// How the versions are compared.
    pub(super) design: Design,
    /// The calls of each version from which on the slowdown is found in 95 % of the comparisons, at
    /// 5 % false alarms. `None` if that is more than `most_calls`, or without a slowdown.
    pub(super) calls: Option<f64>,
    /// The start of its 95 % interval; `None` beyond `most_calls`.
    pub(super) calls_low: Option<f64>,
    /// The end of its 95 % interval; `None` beyond `most_calls`.
    pub(super) calls_high: Option<f64>,
    /// The most calls of a comparison.
    pub(super) most_calls: f64,
    /// The calls for which a batch stands.
    pub(super) batch_calls: f64,
    /// The share of comparisons without a slowdown in which the test finds one, with `calls`
    /// or with the most.
    pub(super) false_alarms: Option<f64>,
    /// The spread of the batches of a run, or of the differences of a duet, in percent of the base
    /// version: the distance of the quartiles in standard deviations.
    pub(super) noise_percent: Option<f64>,
    /// The spread of the medians of runs, likewise.
    pub(super) run_noise_percent: Option<f64>,
    /// The number of runs.
    pub(super) repetitions: usize,
    /// The reason why a run failed, if one did.
    pub(super) failure: Option<String>,
}

/// The cases with a kind and a function.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) kind: &'static Kind,
    pub(super) function_us: u32,
    /// The first is 0.
    pub(super) slowdowns: Vec<u32>,
}

impl Group {
    /// Makes the rows. `runs` are those of the base version alone; then for each slowdown those of
    /// the changed version alone and of the duet.
    pub(super) fn rows(&self, runs: &[Runs<Measured>], seed: u64) -> Vec<Row> {
        let (base, changed) = runs.split_first().expect("the base version has runs");
        let duets = changed.iter().skip(1).step_by(2).map(|it| [it, it]);
        let separate = changed.iter().step_by(2).map(|it| [base, it]);
        let mut rows = self.rows_of(Design::Duet, &duets.collect::<Vec<_>>(), seed);
        rows.extend(self.rows_of(Design::Separate, &separate.collect::<Vec<_>>(), seed));
        rows
    }

    /// Makes the rows of a design, from the runs with both versions for each slowdown.
    fn rows_of(&self, design: Design, runs: &[[&Runs<Measured>; 2]], seed: u64) -> Vec<Row> {
        let bases: Vec<Batches> = runs.iter().map(|[base, _]| of_version(base)).collect();
        let changed = runs.iter().map(|[_, changed]| match design {
            Design::Duet => differences(changed),
            Design::Separate => of_version(changed),
        });
        let changed: Vec<Batches> = changed.collect();
        let compared = bases
            .iter()
            .zip(&changed)
            .map(|(base, changed)| match design {
                Design::Duet => Compared::Duet(changed),
                Design::Separate => Compared::Separate(base, changed),
            });
        let compared: Vec<Compared<'_>> = compared.collect();
        let failure = runs.iter().flatten().find_map(|runs| runs.failure.as_ref());
        let max_batches = match failure {
            None => {
                let all = compared.iter().map(|it| it.max_batches());
                all.min().expect("the first slowdown is none")
            }
            Some(_) => 0,
        };
        let random = &mut Random::new(seed);
        let trials = compared
            .iter()
            .map(|it| Trials::of(*it, max_batches, random));
        let trials: Vec<Trials> = trials.collect();
        let row = |(index, slowdown_percent): (usize, &u32)| {
            let needed = match slowdown_percent {
                0 => Needed::default(),
                _ => Needed::of(&trials[0], &trials[index], random),
            };
            let samples = runs[index].iter().flat_map(|runs| &runs.samples);
            let batch_calls = samples.map(|run| run.batch_calls).fold(0.0, f64::max);
            let calls = |batches: usize| (count(batches) * batch_calls).ceil();
            let base_ns = medians(&bases[index]).quantile(0.5);
            let percent = |spread: Option<f64>| Some(100.0 * spread? / base_ns?);
            let spreads = changed[index].iter().filter_map(|run| spread(&of_run(run)));
            Row {
                kind: self.kind.name,
                function_us: self.function_us,
                base_ns,
                slowdown_percent: *slowdown_percent,
                design,
                calls: needed.batches.map(calls),
                calls_low: needed.low.map(calls),
                calls_high: needed.high.map(calls),
                most_calls: calls(max_batches),
                batch_calls,
                false_alarms: trials[0].alarms(needed.batches),
                noise_percent: percent(Distribution::of(spreads).quantile(0.5)),
                run_noise_percent: percent(spread(&medians(&changed[index]))),
                repetitions: changed[index].len(),
                failure: failure.map(ToString::to_string),
            }
        };
        self.slowdowns.iter().enumerate().map(row).collect()
    }
}

/// The batches of each run, or the differences of their pairs, in nanoseconds a call.
type Batches = Vec<Vec<f64>>;

/// The batches of the only version of these runs, or of the base version of duets.
fn of_version(runs: &Runs<Measured>) -> Batches {
    let runs = runs.samples.iter();
    runs.map(|run| run.batches_ns[0].clone()).collect()
}

/// By how much the changed version is slower, pair by pair.
fn differences(duets: &Runs<Measured>) -> Batches {
    let of_run = |run: &Measured| {
        let pairs = run.batches_ns[0].iter().zip(&run.batches_ns[1]);
        pairs.map(|(base, changed)| changed - base).collect()
    };
    duets.samples.iter().map(of_run).collect()
}

fn of_run(batches: &[f64]) -> Distribution {
    Distribution::of(batches.iter().copied())
}

/// The median of each run.
fn medians(batches: &Batches) -> Distribution {
    Distribution::of(batches.iter().filter_map(|run| of_run(run).quantile(0.5)))
}

/// The standard deviation of a normal distribution with the same quartiles: outliers do not count.
fn spread(values: &Distribution) -> Option<f64> {
    Some((values.quantile(0.75)? - values.quantile(0.25)?) / QUARTILES)
}

const COLUMNS: &[Column<Row>] = &[
    Column::text("kind", |row: &Row| row.kind.to_owned()),
    Column::number("µs", |row: &Row| row.function_us.to_string()),
    Column::text("design", |row: &Row| row.design.name().to_owned()),
    Column::number("slower %", |row: &Row| row.slowdown_percent.to_string()),
    Column::number("calls", |row: &Row| within(row, row.calls)),
    Column::number("from", |row: &Row| within(row, row.calls_low)),
    Column::number("to", |row: &Row| within(row, row.calls_high)),
    Column::number("alarms %", |row: &Row| {
        short_or_dash(row.false_alarms.map(|it| 100.0 * it))
    }),
    Column::number("noise %", |row: &Row| short_or_dash(row.noise_percent)),
    Column::number("runs %", |row: &Row| short_or_dash(row.run_noise_percent)),
    Column::number("base ns", |row: &Row| short_or_dash(row.base_ns)),
];

/// A number of calls, or `>N` if it is beyond the most.
fn within(row: &Row, calls: Option<f64>) -> String {
    match (row.slowdown_percent, calls) {
        (0, _) => "-".to_owned(),
        (_, Some(calls)) => short(calls),
        (_, None) => format!(">{}", short(row.most_calls)),
    }
}

/// Returns the rows as a table, and failures below it.
pub(super) fn table(rows: &[Row]) -> String {
    let failed = rows
        .iter()
        .filter_map(|row| Some((row, row.failure.as_ref()?)));
    let lines = failed.map(|(row, failure)| format!("{}: {failure}\n", row.kind));
    report::table(rows, COLUMNS) + &lines.collect::<String>()
}

/// Returns the chart, as SVG: for one slowdown a bar for each kind, function and design. Grey bars
/// end at the most calls, with which it was not found.
pub(super) fn chart(rows: &[Row]) -> Result<String, Failure> {
    let slowdowns = || rows.iter().map(|row| row.slowdown_percent);
    let charted = slowdowns()
        .filter(|percent| *percent > 0)
        .min_by_key(|percent| percent.abs_diff(CHARTED_PERCENT));
    let charted = rows
        .iter()
        .filter(|row| Some(row.slowdown_percent) == charted);
    let bars = charted.map(|row| Bar {
        name: format!("{} {} µs {}", row.kind, row.function_us, row.design.name()),
        value: row.calls.unwrap_or(row.most_calls),
        quartiles: [row.calls_low, row.calls_high].map(|end| end.unwrap_or(row.most_calls)),
        is_control: row.calls.is_none(),
    });
    chart::bars(&bars.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
