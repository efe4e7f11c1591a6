//! `baler overhead` without the program around it: it builds in a fraction of the time.

use std::io;
use std::process::ExitCode;

use baler_rig::machine::Provenance;
use baler_rig::overhead::{self, Origin, OverheadArgs};
use baler_rig::{Failure, exit_code, process};
use clap::Parser;

/// What a probe costs the application.
#[derive(Debug, Parser)]
struct Args {
    #[command(flatten)]
    overhead: OverheadArgs,
}

fn main() -> ExitCode {
    exit_code("probe_cost", run())
}

fn run() -> Result<bool, Failure> {
    let variants = overhead::variants();
    if let Some(order) = process::order() {
        overhead::obey(&order, &variants)?;
        return Ok(true);
    }
    let origin = Origin {
        variants: &variants,
        words: &[process::CHILD],
    };
    let provenance = Provenance::this();
    overhead::command(
        &Args::parse().overhead,
        &origin,
        &provenance,
        &mut |_| true,
        &mut io::stdout().lock(),
    )
}
