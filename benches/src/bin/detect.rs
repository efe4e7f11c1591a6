//! From how many calls on each kind of probe finds a small slowdown; see the README.

use std::process::ExitCode;

use baler_benches::detect::{Args, child, run};
use baler_benches::exit_code;
use clap::Parser as _;

fn main() -> ExitCode {
    let result = child().unwrap_or_else(|| run(&Args::parse()));
    exit_code("detect", result)
}
