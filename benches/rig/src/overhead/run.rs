//! Measuring all cases, each repetition of each in a process of its own.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::count;
use super::measure::{Measured, call_only, measure};
use super::row::{Row, compare};
use super::variant::{Variant, find};
use crate::child::Child;
use crate::failure::Failure;
use crate::lines::{line, understand};
use crate::schedule::{Found, in_rounds};
use crate::statistics::to_f64;

/// How long a repetition may take beyond what its calls must; a variant that hangs must not hang the
/// run.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often it is asked whether to go on.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What is to be measured, and how often.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The rows, in the order of the table.
    pub cases: Vec<Case>,
    /// How often each.
    pub repetitions: usize,
    /// In which order.
    pub seed: u64,
    /// Whether instructions are counted too.
    pub instructions: bool,
}

/// The program whose processes measure: this one.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// All variants it knows.
    pub variants: &'a [Variant],
    /// The words behind its name that make it call [`obey`] with the word behind them.
    pub words: &'a [&'a str],
}

/// What a process of its own is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Order {
    /// Measure and say the result.
    Measure(Case),
    /// Only call; somebody else counts.
    Call(Case),
}

impl Order {
    pub(super) fn to_json(&self) -> Result<String, Failure> {
        line(self)
    }
}

/// Does in this process what [`run`] wants of it; returns the line to be printed.
///
/// # Errors
///
/// It is no order, or it cannot be carried out.
pub fn obey(order: &str, variants: &[Variant]) -> Result<String, Failure> {
    let measured = match understand(order)? {
        Order::Measure(case) => measure(&case, find(variants, &case.variant)?)?,
        Order::Call(case) => {
            call_only(&case, find(variants, &case.variant)?)?;
            Measured::default()
        }
    };
    line(&measured)
}

/// Is told how many repetitions of how many are done, several times a second, and says whether to go
/// on.
pub type Progress<'a> = dyn FnMut(usize, usize) -> bool + 'a;

/// Measures everything.
///
/// A case that fails is told as such in its row, and the others go on.
///
/// # Errors
///
/// A case names a variant that there is not, or `progress` said to stop.
pub fn run(
    plan: &Plan,
    origin: &Origin<'_>,
    progress: &mut Progress<'_>,
) -> Result<Vec<Row>, Failure> {
    let variants: Vec<_> = plan
        .cases
        .iter()
        .map(|case| find(origin.variants, &case.variant))
        .collect::<Result<_, _>>()?;
    let mut found: Vec<Found<Measured>> = plan.cases.iter().map(|_| Found::default()).collect();
    in_rounds(
        &plan.cases,
        (plan.repetitions, plan.seed),
        &mut found,
        progress,
        |case, go_on| in_process(case, origin, go_on),
    )?;
    let mut rows: Vec<_> = plan
        .cases
        .iter()
        .zip(variants)
        .zip(&found)
        .map(|((case, variant), found)| {
            let failure = found.failure.as_ref().map(ToString::to_string);
            Row::new(case, variant, &found.samples, failure)
        })
        .collect();
    compare(&mut rows);
    if plan.instructions && count::is_possible() {
        count_instructions(plan, origin, &mut rows);
    }
    Ok(rows)
}

/// Counts once for each case that calls back to back on one thread: no other differs in it.
fn count_instructions(plan: &Plan, origin: &Origin<'_>, rows: &mut [Row]) {
    for (case, row) in plan.cases.iter().zip(rows) {
        if case.threads != 1 || case.rate.is_some() || row.failure.is_some() {
            continue;
        }
        match count::instructions_per_call(case, origin) {
            Ok(count) => row.instructions_per_call = Some(count),
            Err(failure) => row.failure = Some(failure.to_string()),
        }
    }
}

fn in_process(
    case: &Case,
    origin: &Origin<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Measured, Failure> {
    let order = Order::Measure(case.clone()).to_json()?;
    let mut words = origin.words.to_vec();
    words.push(&order);
    let child = Child::of_this_program(&words).map_err(Failure::cannot("start a process"))?;
    let paced = case.rate.map_or(0.0, |rate| {
        to_f64(case.instrumented_calls()) / rate.max(1.0)
    });
    let busy = Duration::from_nanos(case.calls.saturating_mul(case.method_time_ns));
    let patience = PATIENCE + busy + Duration::try_from_secs_f64(paced).unwrap_or_default();
    let by = Instant::now() + patience;
    let line = loop {
        let now = Instant::now();
        match child.line(by.min(now + LOOK_AGAIN)) {
            Err(error) if error.kind() == ErrorKind::TimedOut && now < by && go_on() => {}
            line => break line.map_err(Failure::cannot("measure in a process of its own"))?,
        }
    };
    let measured = understand(&line);
    let ended = child.end(PATIENCE);
    if !ended.map_err(Failure::cannot("wait for a process"))? {
        return Err(Failure::new("the measuring process failed"));
    }
    measured
}
