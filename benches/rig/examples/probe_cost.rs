//! `baler overhead` without the program around it: it builds in a fraction of the time.

use std::io::{self, Write as _};
use std::process::ExitCode;

use baler_rig::machine::Provenance;
use baler_rig::overhead::{self, Origin, OverheadArgs};
use baler_rig::{Failure, exit_code};
use clap::Parser;

/// The word by which a process of its own is told its order.
const CHILD: &str = "child";

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
    let mut out = io::stdout().lock();
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(CHILD) {
        let answer = overhead::obey(&words.next().unwrap_or_default(), &variants)?;
        writeln!(out, "{answer}").map_err(Failure::cannot("answer"))?;
        return Ok(true);
    }
    let origin = Origin {
        variants: &variants,
        words: &[CHILD],
    };
    let provenance = Provenance::this();
    overhead::command(
        &Args::parse().overhead,
        &origin,
        &provenance,
        &mut |_| true,
        &mut out,
    )
}
