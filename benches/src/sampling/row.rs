//! The rows of agents, as tables and in the article's form.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use baler_rig::harness::Runs;
use baler_rig::report::{self, Column};
use baler_rig::statistics::{Interval, to_f64};
use serde::Serialize;

use super::demo::{CALLS, method};
use super::measure::{Agent, Case, Measured};

/// The names of the demos.
pub(super) const MIXED: &str = "mixed";
pub(super) const MASS: &str = "mass";

/// The figures of a case, over its repetitions. JSON uses the same names.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    demo: &'static str,
    agent: Agent,
    /// The period of the sampler.
    interval_ms: Option<u32>,
    repetitions: usize,
    demo_ms: Option<Interval>,
    /// The time that the probe adds to a call.
    probe_ns: Option<Interval>,
    /// The parts of the wall time. Their means add up to the mean of `wall`.
    balance_ms: BTreeMap<String, Interval>,
    errors: Vec<Error>,
    /// Points in time that the sampler missed in all repetitions.
    missed: u64,
    /// Of the first repetition.
    path: Vec<String>,
    pub(super) failure: Option<String>,
}

/// The error of an estimator's times of a method.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Error {
    estimator: &'static str,
    method: String,
    true_ms: f64,
    error_percent: Interval,
    /// The number of calls in the first repetition, if the agent knows it.
    calls: Option<u64>,
}

impl Row {
    pub(super) fn new(case: &Case, runs: &Runs<Measured>) -> Self {
        let samples = &runs.samples;
        let of = |figure: &dyn Fn(&Measured) -> f64| runs.interval(figure);
        let first = samples.first();
        let parts = first.iter().flat_map(|it| it.balance.keys());
        let parts = parts.filter_map(|part| Some((part.clone(), of(&|it| it.balance[part])?)));
        let methods = first.iter().flat_map(|it| it.truth_ns.keys());
        let error = |(estimator, method): (&'static str, &String)| {
            let ns = |it: &Measured| it.estimate(estimator, method).map_or(0, |it| it.ns);
            Some(Error {
                estimator,
                method: method.clone(),
                true_ms: of(&|it| it.truth_ns[method] / 1e6)?.mean,
                error_percent: of(&|it| 100.0 * (to_f64(ns(it)) / it.truth_ns[method] - 1.0))?,
                calls: first.and_then(|it| Some(it.estimate(estimator, method)?.calls?.0)),
            })
        };
        let estimators = case.agent.estimators().iter();
        let pairs = methods.flat_map(|method| estimators.clone().map(move |it| (*it, method)));
        Self {
            demo: case.mass.map_or(MIXED, |_| MASS),
            agent: case.agent,
            interval_ms: case.interval_ms,
            repetitions: samples.len(),
            demo_ms: of(&|it| it.demo_ms),
            probe_ns: of(&|it| it.probe_ns),
            balance_ms: parts.collect(),
            errors: pairs.filter_map(error).collect(),
            missed: samples.iter().map(|it| it.missed).sum(),
            path: first.map_or_else(Vec::new, |it| it.path.clone()),
            failure: runs.failure.as_ref().map(ToString::to_string),
        }
    }

    fn error(&self, estimator: &str, ms: u64) -> Option<Interval> {
        let (mut errors, method) = (self.errors.iter(), method(ms));
        let found = errors.find(|it| it.estimator == estimator && it.method == method);
        found.map(|it| it.error_percent)
    }

    fn interval(&self) -> String {
        self.interval_ms
            .map_or_else(String::new, |ms| ms.to_string())
    }
}

/// A row and one of its estimators.
type Line<'a> = (&'a Row, &'static str);

/// The errors of a demo's rows in percent.
pub(super) fn table_of_errors(rows: &[Row], demo: &str) -> String {
    fn cell<const MS: u64>((row, estimator): &Line<'_>) -> String {
        let error = row.error(estimator, MS).map(|it| (it.mean, it.margin()));
        error.map_or_else(String::new, |(mean, margin)| {
            format!("{mean:+.1} ± {margin:.1}")
        })
    }
    let mut columns: Vec<Column<Line<'_>>> = vec![
        Column::text("agent", |(row, _)| row.agent.name().to_owned()),
        Column::number("ms", |(row, _)| row.interval()),
        Column::text("estimator", |(_, estimator)| (*estimator).to_owned()),
    ];
    match demo {
        MIXED => columns.extend([
            Column::number("500ms %", cell::<500>),
            Column::number("100ms %", cell::<100>),
            Column::number("50ms %", cell::<50>),
            Column::number("1ms %", cell::<1>),
        ]),
        _ => columns.push(Column::number("0ms %", cell::<0>)),
    }
    let lines = rows.iter().filter(|row| row.demo == demo).flat_map(|row| {
        let estimators = row.agent.estimators().iter();
        estimators.map(move |estimator| (row, *estimator))
    });
    report::table(&lines.collect::<Vec<_>>(), &columns)
}

/// The parts of the wall time of all rows, in milliseconds.
pub(super) fn table_of_balances(rows: &[Row]) -> String {
    fn part(row: &Row, name: &str) -> String {
        let part = row.balance_ms.get(name);
        part.map_or_else(String::new, |it| {
            let decimals = usize::from(it.mean < 1_000.0);
            format!("{:.decimals$}", it.mean)
        })
    }
    const COLUMNS: &[Column<Row>] = &[
        Column::text("demo", |row| row.demo.to_owned()),
        Column::text("agent", |row| row.agent.name().to_owned()),
        Column::number("ms", Row::interval),
        Column::number("wall", |row| part(row, "wall")),
        Column::number("setup", |row| part(row, "setup")),
        Column::number("work", |row| part(row, "work")),
        Column::number("probes", |row| part(row, "probes")),
        Column::number("sampler", |row| part(row, "sampler")),
        Column::number("collector", |row| part(row, "collector")),
        Column::number("report", |row| part(row, "report")),
        Column::number("rest", |row| part(row, "rest")),
        Column::number("missed", |row| row.missed.to_string()),
    ];
    report::table(rows, COLUMNS)
}

/// A run in the form of the article.
pub(super) fn lines(case: &Case, run: &Measured) -> String {
    let part = |name| run.balance[name];
    let mut lines = Vec::new();
    if let Some(ms) = case.interval_ms {
        let jittered = if case.agent == Agent::Jittered {
            " (jittered)"
        } else {
            ""
        };
        lines.push(format!(
            "Agent monitoring thread main with sampling interval of {ms}ms{jittered}"
        ));
    }
    let demo = match case.mass {
        None => {
            lines.push(format!("Running Demo with {CALLS:?} methods"));
            "MIXED"
        }
        Some(calls) => {
            lines.push(format!("Running Demo with {calls} 0ms methods"));
            "MASS"
        }
    };
    lines.push(format!("{demo} Demo completed in {:.0}ms", run.demo_ms));
    let heading = match case.agent {
        Agent::Plain => return lines.join("\n") + "\n",
        Agent::Operation | Agent::Aggregated => "Trace Aspect recorded following results:",
        Agent::Fixed | Agent::Jittered => "Agent stopped - Results:",
    };
    lines.push(heading.to_owned());
    let ms = |ns: u64| (ns + 500_000) / 1_000_000;
    let estimator = case.agent.estimators()[0];
    let estimates = run.estimates.iter();
    let mut estimates: Vec<_> = estimates.filter(|it| it.estimator == estimator).collect();
    estimates.sort_by_key(|it| Reverse(it.ns));
    for it in estimates {
        let mut line = format!("  {} {}ms", it.method, ms(it.ns));
        if let Some((calls, min, max)) = it.calls {
            let (min, max) = (ms(min), ms(max));
            write!(line, " (min: {min}ms, max: {max}ms) - {calls} invocations").expect("a string");
        }
        lines.push(line);
    }
    if !run.path.is_empty() {
        lines.push("Code Execution Path:".to_owned());
        lines.extend(run.path.iter().map(|entry| format!("  {entry}")));
    }
    if !run.is_path_complete {
        lines.push("Execution Path incomplete!".to_owned());
    }
    // A calibrated time can be a little below 0.
    let internal = (part("probes") + part("sampler")).max(0.0);
    lines.push(format!("Agent internal Overhead {internal:.0}ms"));
    let outside = part("setup") + part("report");
    lines.push(format!("Agent Overhead {outside:.0}ms"));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests;
