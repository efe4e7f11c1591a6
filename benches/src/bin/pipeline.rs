//! What each part of the way costs on this machine; see the README.

use std::io::{self, Write as _};
use std::process::ExitCode;

use baler_benches::pipeline::{Args, run};
use clap::Parser as _;

fn main() -> ExitCode {
    match run(&Args::parse(), &mut io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing is left to tell it to if this fails.
            writeln!(io::stderr(), "pipeline: {error}").ok();
            ExitCode::FAILURE
        }
    }
}
