//! What a probe costs the application, beside rival libraries; see the README.

use std::io;
use std::process::ExitCode;

use baler_benches::exit_code;
use baler_benches::overhead::{Args, obeyed, run};
use clap::Parser as _;

fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    let result = match obeyed(&mut out) {
        Some(done) => done,
        None => run(&Args::parse(), &mut out),
    };
    exit_code("overhead", result)
}
