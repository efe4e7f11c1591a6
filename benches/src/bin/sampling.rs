//! What a sampler shows of known calls, and what probes show; see the README.

use std::process::ExitCode;

use baler_benches::exit_code;
use baler_benches::sampling::{Args, child, run};
use clap::Parser as _;

fn main() -> ExitCode {
    let result = child().unwrap_or_else(|| run(&Args::parse()));
    exit_code("sampling", result)
}
