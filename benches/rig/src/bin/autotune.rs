//! What chunks cost whose size the collector chooses itself, beside fixed sizes; see the README of
//! the benchmarks.

use std::io;
use std::process::ExitCode;

use baler_rig::autotune::{AutotuneArgs, obey, run};
use baler_rig::failure::exit_code;
use clap::Parser as _;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match obey(&words) {
        Some(done) => done,
        None => run(&AutotuneArgs::parse(), &mut io::stdout().lock()),
    };
    exit_code("autotune", result)
}
