//! The size and time of a record in every format, in bytes and nanoseconds; see the README.

use std::process::ExitCode;

use baler_benches::codec::{Args, run};
use baler_benches::exit_code;
use clap::Parser as _;

fn main() -> ExitCode {
    exit_code("codec", run(&Args::parse()))
}
