//! What more consumers bring; see the README.

use std::io::{self, Write as _};
use std::process::ExitCode;

use baler_benches::child;
use baler_benches::scaling::{Args, run};
use clap::Parser as _;

fn main() -> ExitCode {
    let result = match child() {
        Some(done) => done.map(|()| true),
        None => run(&Args::parse(), &mut io::stdout().lock()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing is left to tell it to if this fails.
            writeln!(io::stderr(), "scaling: {error}").ok();
            ExitCode::FAILURE
        }
    }
}
