//! `baler overhead` without the rest of the program: it builds in a fraction of the time.

use std::process::ExitCode;

use baler_rig::overhead::{self, Origin, OverheadArgs};
use baler_rig::{Failure, Outcome, exit_code, process};
use clap::Parser;

/// The cost of a probe for the application.
#[derive(Debug, Parser)]
struct Args {
    #[command(flatten)]
    overhead: OverheadArgs,
}

fn main() -> ExitCode {
    exit_code("probe_cost", run())
}

fn run() -> Result<Outcome, Failure> {
    let variants = overhead::variants();
    if let Some(order) = process::order() {
        overhead::obey(&order, &variants)?;
        return Ok(Outcome::silent());
    }
    let origin = Origin {
        variants: &variants,
        words: &[process::CHILD],
    };
    overhead::command(&Args::parse().overhead, &origin, &mut |_| true)
}
