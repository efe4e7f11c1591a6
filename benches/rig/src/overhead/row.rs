//! The figures of a case after its repetitions.

use serde::Serialize;

use super::case::Case;
use super::measure::Measured;
use super::variant::Variant;
use crate::chart::{self, Bar};
use crate::harness::Failure;
use crate::report::{self, Column, differ, short, short_or_dash};
use crate::statistics::{Distribution, Interval, to_f64};

/// The figures of a case. JSON uses the same names. Times are for one instrumented call, in
/// nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// The name of the probe.
    pub variant: String,
    /// A description of the probe.
    pub about: &'static str,
    /// The settings of a rival library; empty if there are none.
    pub settings: &'static str,
    /// The number of calling threads.
    pub threads: usize,
    /// The number of instrumented calls in a call from outside.
    pub depth: u32,
    /// The number of calls from outside by each thread in a repetition, including the warm-up.
    pub calls: u64,
    /// The number of repetitions.
    pub repetitions: usize,
    /// The number of measured batches in all repetitions.
    pub batches: usize,
    /// The median of the batches of all repetitions.
    pub median_ns_per_call: Option<f64>,
    /// The mean of the repetitions' means.
    pub mean_ns_per_call: Option<f64>,
    /// Half the width of the mean's 95 % confidence interval. It is computed from the repetitions
    /// and not from the batches, which depend on each other.
    pub mean_margin_ns: Option<f64>,
    /// The first quartile of the batches.
    pub q1_ns_per_call: Option<f64>,
    /// The third quartile of the batches.
    pub q3_ns_per_call: Option<f64>,
    /// The time that 99 % of the batches do not exceed.
    pub p99_ns_per_call: Option<f64>,
    /// The time that 99.9 % of the batches do not exceed.
    pub p999_ns_per_call: Option<f64>,
    /// The median minus the median of `none` with the same run, threads and depth.
    pub over_none_ns: Option<f64>,
    /// The median divided by the median of `clock` with the same run, threads and depth.
    pub times_clock: Option<f64>,
    /// The mean divided by the mean of `clock` with the same run, threads and depth.
    pub mean_times_clock: Option<f64>,
    /// CPU time of all other threads of the process: collector and exporter.
    pub background_cpu_ns_per_call: Option<f64>,
    /// Instrumented calls of all repetitions, including the warm-up.
    pub records: u64,
    /// The number of calls without a record at the end.
    pub lost: u64,
    /// Instructions of the calling thread, counted by callgrind; `None` if they were not counted.
    pub instructions_per_call: Option<f64>,
    /// The reason why the case failed, if it did.
    pub failure: Option<String>,
}

impl Row {
    /// Creates the row of a case; [`compare`] adds the comparison with others.
    pub(super) fn new(
        case: &Case,
        variant: &Variant,
        measured: &[Measured],
        failure: Option<String>,
    ) -> Self {
        let batches = Distribution::of(measured.iter().flat_map(Measured::ns_per_call));
        let means: Vec<f64> = measured
            .iter()
            .filter_map(|one| Interval::of(&one.ns_per_call().collect::<Vec<_>>()))
            .map(|interval| interval.mean)
            .collect();
        let mean = Interval::of(&means);
        let calls = to_f64(measured.iter().map(Measured::measured_calls).sum());
        let background_cpu = to_f64(measured.iter().map(|one| one.background_cpu_ns).sum());
        Self {
            variant: case.variant.clone(),
            about: variant.about,
            settings: variant.settings,
            threads: case.threads,
            depth: case.depth,
            calls: case.calls,
            repetitions: means.len(),
            batches: measured.iter().map(|one| one.batches_ns.len()).sum(),
            median_ns_per_call: batches.quantile(0.5),
            mean_ns_per_call: mean.map(|mean| mean.mean),
            mean_margin_ns: mean.filter(|_| means.len() > 1).map(|mean| mean.margin()),
            q1_ns_per_call: batches.quantile(0.25),
            q3_ns_per_call: batches.quantile(0.75),
            p99_ns_per_call: batches.quantile(0.99),
            p999_ns_per_call: batches.quantile(0.999),
            over_none_ns: None,
            times_clock: None,
            mean_times_clock: None,
            background_cpu_ns_per_call: (calls > 0.0).then(|| background_cpu / calls),
            records: measured.iter().map(|one| one.calls).sum(),
            lost: measured.iter().map(|one| one.lost).sum(),
            instructions_per_call: None,
            failure,
        }
    }

    /// Whether both were measured in the same way, so that only the probe differs.
    fn is_beside(&self, other: &Self) -> bool {
        (self.threads, self.depth) == (other.threads, other.depth)
    }
}

/// Compares every row with its controls.
pub(super) fn compare(rows: &mut [Row]) {
    let before = rows.to_vec();
    for row in rows {
        let pair = |name: &str, of: fn(&Row) -> Option<f64>| {
            let mut all = before.iter();
            let other = all.find(|other| other.variant == name && other.is_beside(row))?;
            of(row).zip(of(other))
        };
        let over_none = pair("none", |row| row.median_ns_per_call);
        let by_clock = pair("clock", |row| row.median_ns_per_call);
        let mean_by_clock = pair("clock", |row| row.mean_ns_per_call);
        row.over_none_ns = over_none.map(|(own, none)| own - none);
        row.times_clock = by_clock.map(|(own, clock)| own / clock);
        row.mean_times_clock = mean_by_clock.map(|(own, clock)| own / clock);
    }
}

const COLUMNS: &[Column<Row>] = &[
    Column::text("variant", |row: &Row| row.variant.clone())
        .key()
        .meaning("What is measured; --list explains each. Times are nanoseconds for one call."),
    Column::number("thr", |row: &Row| row.threads.to_string())
        .key()
        .meaning("Calling threads.")
        .shown_for(|rows: &[Row]| differ(rows, |row| row.threads)),
    Column::number("depth", |row: &Row| row.depth.to_string())
        .key()
        .meaning("How deep calls nest.")
        .shown_for(|rows: &[Row]| differ(rows, |row| row.depth)),
    Column::number("median", |row: &Row| short_or_dash(row.median_ns_per_call))
        .meaning("The median of all batches of calls."),
    Column::number("mean", |row: &Row| short_or_dash(row.mean_ns_per_call))
        .meaning("The mean of the repetitions."),
    Column::number("±95 %", |row: &Row| short_or_dash(row.mean_margin_ns))
        .meaning("The 95 % confidence interval of this mean, to each side."),
    Column::number("p99", |row: &Row| short_or_dash(row.p99_ns_per_call))
        .meaning("99 of 100 batches took this time or less."),
    Column::number("p99.9", |row: &Row| short_or_dash(row.p999_ns_per_call))
        .meaning("The same for 999 of 1,000 batches."),
    Column::number("x clock", |row: &Row| times(row.times_clock))
        .meaning("The median by that of two clock reads (clock).")
        .shown_for(has_clock),
    Column::number("mean x", |row: &Row| times(row.mean_times_clock))
        .meaning("The mean by that of clock.")
        .shown_for(has_clock),
    Column::number("lost %", lost).meaning("The share of calls without a record at the end."),
    Column::number("bg CPU", |row: &Row| {
        short_or_dash(row.background_cpu_ns_per_call)
    })
    .meaning("CPU time of all other threads of the process for one call."),
    Column::number("instr", |row: &Row| {
        let count = row.instructions_per_call;
        count.map_or_else(|| "-".to_owned(), |count| format!("{count:.0}"))
    })
    .meaning("Instructions of the calling thread for one call.")
    .shown_for(|rows: &[Row]| rows.iter().any(|row| row.instructions_per_call.is_some())),
];

fn has_clock(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.times_clock.is_some())
}

fn times(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |times| format!("{times:.2}"))
}

fn lost(row: &Row) -> String {
    match (row.lost, row.records) {
        (_, 0) => "-".to_owned(),
        (0, _) => "0".to_owned(),
        (lost, records) => short(100.0 * to_f64(lost) / to_f64(records)),
    }
}

/// Returns the chart of these rows, as SVG: a bar for each row with a figure.
///
/// # Errors
///
/// Drawing fails.
pub(super) fn chart(rows: &[Row]) -> Result<String, Failure> {
    let bars: Vec<Bar> = rows.iter().filter_map(|row| bar(rows, row)).collect();
    chart::bars(&bars)
}

/// Their bars have another colour: the others are compared with them.
const CONTROLS: &[&str] = &["none", "clock", "instant"];

fn bar(rows: &[Row], row: &Row) -> Option<Bar> {
    let value = row.median_ns_per_call?;
    let mut name = row.variant.clone();
    if row.threads > 1 {
        name.push_str(&format!(" x{}", row.threads));
    }
    if differ(rows, |row| row.depth) {
        name.push_str(&format!(" depth {}", row.depth));
    }
    Some(Bar {
        name,
        value,
        quartiles: [row.q1_ns_per_call, row.q3_ns_per_call].map(|it| it.unwrap_or(value)),
        is_control: CONTROLS.contains(&row.variant.as_str()),
    })
}

/// Returns the rows as a table; below it the meaning of its headings, the settings of rivals, and
/// failures.
pub(super) fn table(rows: &[Row]) -> String {
    [
        report::table(rows, COLUMNS),
        report::legend(rows, COLUMNS),
        notes(rows),
    ]
    .concat()
}

/// A line for each rival with settings and for each row that failed, below an empty line.
fn notes(rows: &[Row]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| !row.settings.is_empty()) {
        let line = format!("{}: {}\n", row.variant, row.settings);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    for row in rows {
        let failure = row.failure.iter();
        lines.extend(failure.map(|failure| format!("{}: {failure}\n", row.variant)));
    }
    if !lines.is_empty() {
        lines.insert(0, "\n".to_owned());
    }
    lines.concat()
}

#[cfg(test)]
mod tests;
