//! What more consumers bring; see the README.

use std::io;
use std::process::ExitCode;

use baler_benches::scaling::{Args, run};
use baler_benches::{child, exit_code};
use clap::Parser as _;

fn main() -> ExitCode {
    let result = match child() {
        Some(done) => done.map(|()| true),
        None => run(&Args::parse(), &mut io::stdout().lock()),
    };
    exit_code("scaling", result)
}
