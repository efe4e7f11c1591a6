//! `baler completions`: a completion script for a shell.

use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{Code, Failure};
use crate::output;

/// Prints the script.
pub(super) fn run(shell: Shell) -> Result<Code, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "baler", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Code::Done)
}
