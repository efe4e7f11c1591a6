//! The common parts of all measurements: cases in interleaved rounds, output, and failures.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;

use crate::machine::Provenance;
use crate::statistics::Interval;
use crate::workload::Random;

/// A measurement failed, or its result was wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(Box<str>);

impl Failure {
    /// Creates a failure with this reason.
    pub fn new(reason: impl Into<Box<str>>) -> Self {
        Self(reason.into())
    }

    /// Returns a function that converts an error: `what` completes "cannot ...".
    pub fn cannot<E: Display>(what: &str) -> impl Fn(E) -> Self {
        move |error| Self(format!("cannot {what}: {error}").into())
    }

    pub(crate) fn stopped() -> Self {
        Self::new("stopped before everything was measured")
    }
}

/// The end of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The text to print.
    pub text: String,
    /// Whether every row has its figures and no error occurred.
    pub is_right: bool,
}

impl Outcome {
    /// Nothing to print and no error.
    pub fn silent() -> Self {
        Self {
            text: String::new(),
            is_right: true,
        }
    }
}

/// Prints the outcome of a measuring program to standard output, or its failure to standard error;
/// returns the exit code.
pub fn exit_code(program: &str, result: Result<Outcome, Failure>) -> ExitCode {
    let printed = result.and_then(|outcome| {
        let mut out = io::stdout().lock();
        let printed = out.write_all(outcome.text.as_bytes());
        let flushed = printed.and_then(|()| out.flush());
        flushed.map_err(Failure::cannot("print the results"))?;
        Ok(outcome.is_right)
    });
    match printed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // If this fails, there is no place left to report it.
            writeln!(io::stderr(), "{program}: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

/// The runs of a case, until one failed.
#[derive(Debug, Clone)]
pub struct Runs<S> {
    /// The results, one a round.
    pub samples: Vec<S>,
    /// The reason why there are no more.
    pub failure: Option<Failure>,
}

impl<S> Runs<S> {
    /// The mean of a figure of these runs, with its interval; `None` without a run.
    pub fn interval(&self, figure: impl Fn(&S) -> f64) -> Option<Interval> {
        let values: Vec<f64> = self.samples.iter().map(figure).collect();
        Interval::of(&values)
    }
}

/// How often and in which order to measure.
#[derive(Debug)]
pub struct Rounds<S> {
    /// How often each case is measured.
    pub repetitions: usize,
    /// Decides the order within each round.
    pub seed: u64,
    /// Results of an interrupted measurement, by the number of the run.
    pub finished: BTreeMap<usize, Result<S, Failure>>,
}

/// The progress of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Finished runs.
    pub done: usize,
    /// All runs.
    pub of: usize,
    /// The estimated time of the other runs; `None` until a run has ended.
    pub left: Option<Duration>,
}

/// Called many times a second; returns whether to continue.
pub type Progress<'a> = dyn FnMut(Standing) -> bool + 'a;

/// Shows the progress on standard error if it is a terminal, but not in a file or a pipe. Always
/// continues.
pub fn on_terminal() -> impl FnMut(Standing) -> bool {
    let mut terminal = Some(io::stderr()).filter(io::Stderr::is_terminal);
    move |Standing { done, of, .. }| {
        if let Some(terminal) = &mut terminal {
            // Only decoration.
            write!(terminal, "\r{done} of {of} ").ok();
        }
        true
    }
}

/// Measures every case once in each round. A case that failed is not measured again, but the others
/// continue. `measure` gets the number of the run, and a function that it must call many times a
/// second and that returns whether to continue.
///
/// # Errors
///
/// `progress` requested a stop.
pub fn in_rounds<C, S>(
    cases: &[C],
    rounds: Rounds<S>,
    progress: &mut Progress<'_>,
    mut measure: impl FnMut(usize, &C, &mut dyn FnMut() -> bool) -> Result<S, Failure>,
) -> Result<Vec<Runs<S>>, Failure> {
    let order = interleaved(cases.len(), rounds.repetitions, rounds.seed);
    let mut finished = rounds.finished;
    let none = || Runs {
        samples: Vec::new(),
        failure: None,
    };
    let mut all: Vec<Runs<S>> = cases.iter().map(|_| none()).collect();
    let (started, mut measured) = (Instant::now(), 0_u32);
    for (number, index) in order.iter().enumerate() {
        let one = started.elapsed().checked_div(measured);
        let left = u32::try_from(order.len() - number).expect("a plan has fewer runs");
        let standing = Standing {
            done: number,
            of: order.len(),
            left: one.map(|one| one * left),
        };
        let mut go_on = || progress(standing);
        let (case, runs) = (&cases[*index], &mut all[*index]);
        if runs.failure.is_none() {
            let result = finished.remove(&number).unwrap_or_else(|| {
                measured += 1;
                measure(number, case, &mut go_on)
            });
            match result {
                Ok(sample) => runs.samples.push(sample),
                Err(failure) => runs.failure = Some(failure),
            }
        }
        if !go_on() {
            return Err(Failure::stopped());
        }
    }
    Ok(all)
}

/// Returns every case once in each round, in a random order.
///
/// If a machine is slower for a while, all cases are affected alike, and no case always runs after
/// the same other one.
fn interleaved(cases: usize, repetitions: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut order = Vec::new();
    for _ in 0..repetitions {
        let mut round: Vec<usize> = (0..cases).collect();
        // Fisher and Yates, from the end.
        for last in (1..cases).rev() {
            round.swap(last, random.below(last + 1));
        }
        order.extend(round);
    }
    order
}

/// How to print rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A list of objects.
    Json,
    /// For people, within 100 columns.
    Table,
}

/// The rows of a measurement, and their provenance.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Results<'a, R> {
    /// The name of the measurement and, without their extension, of its files.
    #[serde(skip)]
    pub name: &'a str,
    /// The provenance of the rows.
    #[serde(flatten)]
    pub provenance: &'a Provenance,
    /// The rows.
    pub rows: &'a [R],
}

impl<R: Serialize> Results<'_, R> {
    /// Writes the rows with their provenance, the table, and files with these extensions and texts
    /// into a folder, if there is one. Returns the text to print.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn write(
        &self,
        format: Format,
        table: String,
        folder: Option<&Path>,
        others: &[(&str, &str)],
    ) -> Result<String, Failure> {
        if let Some(folder) = folder {
            let json = to_json(self)?;
            let files = [&[("json", &*json), ("txt", &table)], others].concat();
            keep(folder, self.name, &files)?;
        }
        match format {
            Format::Json => to_json(&self.rows),
            Format::Table => Ok(table),
        }
    }
}

/// Writes a file of this name for each extension and text.
pub(crate) fn keep(folder: &Path, name: &str, files: &[(&str, &str)]) -> Result<(), Failure> {
    let failed = Failure::cannot("write the results");
    fs::create_dir_all(folder).map_err(&failed)?;
    for (extension, text) in files {
        fs::write(folder.join(name).with_extension(extension), text).map_err(&failed)?;
    }
    Ok(())
}

/// A value as indented JSON with a line break at the end.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    Ok(text.map_err(Failure::cannot("write JSON"))? + "\n")
}

#[cfg(test)]
mod tests;
