//! What a probe costs the application, beside rival libraries; see the README.

use std::io::{self, Write as _};
use std::process::ExitCode;

use baler_benches::overhead::{Args, obeyed, run};
use clap::Parser as _;

fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    let result = match obeyed(&mut out) {
        Some(done) => done,
        None => run(&Args::parse(), &mut out),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing is left to tell it to if this fails.
            writeln!(io::stderr(), "overhead: {error}").ok();
            ExitCode::FAILURE
        }
    }
}
