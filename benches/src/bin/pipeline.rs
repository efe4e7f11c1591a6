//! What each part of the way costs on this machine; see the README.

use std::io;
use std::process::ExitCode;

use baler_benches::exit_code;
use baler_benches::pipeline::{Args, run};
use clap::Parser as _;

fn main() -> ExitCode {
    let result = run(&Args::parse(), &mut io::stdout().lock());
    exit_code("pipeline", result)
}
