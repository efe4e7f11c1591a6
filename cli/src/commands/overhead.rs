//! `baler overhead`: measures the cost of a probe on this machine.
//!
//! The measurement is `baler_rig::overhead`; the benches measure the same beside rival libraries.

use baler_rig::harness::{Outcome, Standing};
use baler_rig::overhead::{self, Origin, OverheadArgs};

use crate::exit::{Code, Failure};
use crate::output::{self, Progress};
use crate::shutdown::Shutdown;

/// The hidden command that measuring processes run.
const ORDER: &str = "overhead-order";

/// Measures the chosen variants and prints the result.
pub(super) fn run(args: &OverheadArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let variants = overhead::variants();
    args.cases(&variants)
        .map_err(|failure| Failure::new(Code::Usage, failure.to_string()))?;
    let origin = Origin {
        variants: &variants,
        words: &[ORDER],
    };
    let bar = Progress::spinner(quiet);
    let mut progress = |Standing { done, of, .. }: Standing| {
        bar.show(0, || format!("{done} of {of} repetitions"));
        !shutdown.is_requested()
    };
    let measured = overhead::command(args, &origin, &mut progress);
    bar.clear();
    if shutdown.is_requested() {
        let message = "ended by a signal before everything was measured";
        return Err(Failure::new(Code::Incomplete, message));
    }
    show(&measured.map_err(failed)?)
}

/// Prints the result of a measurement.
pub(super) fn show(outcome: &Outcome) -> Result<Code, Failure> {
    output::print(&outcome.text)?;
    Ok(match outcome.is_right {
        true => Code::Done,
        false => Code::Internal,
    })
}

/// Measures one repetition for the parent process.
pub(super) fn run_order(order: &str) -> Result<Code, Failure> {
    overhead::run_order(order, &overhead::variants()).map_err(failed)?;
    Ok(Code::Done)
}

/// Returns the failure for a measurement that cannot be made.
pub(super) fn failed(failure: baler_rig::Failure) -> Failure {
    Failure::new(Code::Internal, failure.to_string())
}
