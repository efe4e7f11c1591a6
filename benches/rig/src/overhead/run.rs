//! Measures all cases, each repetition in a process of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::args::OverheadArgs;
use super::case::Case;
use super::measure::{Measured, call_only, measure};
use super::row::{Row, compare};
use super::variant::{Variant, find};
use crate::harness::{Failure, Progress, Rounds, in_rounds};
use crate::instructions;
use crate::process::{Child, parse_line, send_to_parent, to_line};
use crate::statistics::to_f64;

/// The counted calls from outside. Their records fit into the queue, so no call waits: valgrind runs
/// one thread at a time.
const COUNTED_CALLS: u64 = 5_000;

/// The time limit of a repetition; a variant that hangs must not hang the run.
const PATIENCE: Duration = Duration::from_secs(300);

/// The program whose processes measure: this program.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// All its variants.
    pub variants: &'a [Variant],
    /// The arguments that make it call [`run_order`] with the argument after them.
    pub words: &'a [&'a str],
}

/// The task of a child process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Order {
    /// Measure and print the result.
    Measure(Case),
    /// Only call; callgrind counts.
    Call(Case),
}

/// Carries out an order of [`command`](super::command()) or [`instructions_per_call`] in this
/// process, and prints the answer.
///
/// # Errors
///
/// The text is not an order, or the order cannot be carried out.
pub fn run_order(order: &str, variants: &[Variant]) -> Result<(), Failure> {
    match parse_line(order)? {
        Order::Measure(case) => send_to_parent(&measure(&case, find(variants, &case.variant)?)?),
        Order::Call(case) => call_only(&case, find(variants, &case.variant)?),
    }
}

/// Measures everything.
///
/// A case that fails has the reason in its row; the others continue.
///
/// # Errors
///
/// A requested variant does not exist, or `progress` requested a stop.
pub(super) fn run(
    args: &OverheadArgs,
    origin: &Origin<'_>,
    progress: &mut Progress<'_>,
) -> Result<Vec<Row>, Failure> {
    let cases = args.cases(origin.variants)?;
    let rounds = Rounds {
        repetitions: args.repetitions(),
        seed: args.seed,
        finished: BTreeMap::new(),
    };
    let all = in_rounds(&cases, rounds, progress, |_, case, go_on| {
        let order = Order::Measure(case.clone());
        Child::answer_to::<Measured>(origin.words, &order, PATIENCE, go_on)
    })?;
    let mut rows = Vec::new();
    for (case, runs) in cases.iter().zip(&all) {
        let variant = find(origin.variants, &case.variant)?;
        let failure = runs.failure.as_ref().map(ToString::to_string);
        rows.push(Row::new(case, variant, &runs.samples, failure));
    }
    compare(&mut rows);
    if args.instructions && instructions::is_possible() {
        count_instructions(&cases, origin, &mut rows);
    }
    Ok(rows)
}

/// Counts once for each case with one thread: the number of threads does not change the count.
fn count_instructions(cases: &[Case], origin: &Origin<'_>, rows: &mut [Row]) {
    for (case, row) in cases.iter().zip(rows) {
        if case.threads != 1 || row.failure.is_some() {
            continue;
        }
        match instructions_per_call(case, origin) {
            Ok(count) => row.instructions_per_call = Some(count),
            Err(failure) => row.failure = Some(failure.to_string()),
        }
    }
}

/// Returns how many instructions the calling thread executes for an instrumented call of this
/// variant.
///
/// Instructions of other threads and of the operating system do not count.
///
/// # Errors
///
/// The program cannot be run under callgrind, or failed.
pub fn instructions_per_call(case: &Case, origin: &Origin<'_>) -> Result<f64, Failure> {
    let case = Case {
        calls: COUNTED_CALLS,
        threads: 1,
        ..case.clone()
    };
    let calls = (COUNTED_CALLS * u64::from(case.depth)).max(1);
    let order = to_line(&Order::Call(case))?;
    let count = instructions::count(&[origin.words, &[&order]].concat())?;
    Ok(to_f64(count) / to_f64(calls))
}
