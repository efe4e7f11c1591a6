//! The commands. Each turns its arguments into settings, does its work, and returns an exit code.

mod analyze;
mod demo;
mod generate;
mod inspect;
#[cfg(feature = "instrument")]
mod instrument;
mod irl;
mod overhead;
mod probes;
mod receive;
mod relay;
mod replay;
mod send;
mod sweep;
mod tap;
mod top;
mod validate;
mod verify;

use std::fs;
use std::path::Path;

use clap_complete::Shell;

use crate::args::{Cli, Command};
use crate::exit::{Code, Failure};
use crate::output;
use crate::shutdown::Shutdown;

/// Runs the command of the command line.
///
/// # Errors
///
/// The reason for ending early, with its exit code.
pub(crate) fn run(cli: Cli, shutdown: &Shutdown) -> Result<Code, Failure> {
    let quiet = cli.global.quiet;
    let verbose = cli.global.verbose;
    match cli.command {
        Command::Analyze(args) => analyze::run(&args, quiet, shutdown),
        Command::Replay(args) => replay::run(&args, quiet, shutdown),
        Command::Relay(args) => relay::run(&args, quiet, shutdown),
        Command::Receive(args) => receive::run(args, quiet, shutdown),
        Command::Completions { shell } => completions(shell),
        Command::Man { folder } => man(&folder),
        Command::Generate(args) => generate::run(&args, quiet, shutdown),
        Command::Inspect(args) => inspect::run(&args, quiet, shutdown),
        #[cfg(feature = "instrument")]
        Command::Instrument(args) => instrument::run(&args, quiet),
        Command::Irl(args) => irl::run(&args, quiet, shutdown),
        Command::Probes(args) => probes::run(&args, quiet),
        Command::Overhead(args) => overhead::run(&args, quiet, shutdown),
        Command::OverheadOrder { order } => overhead::run_order(&order),
        Command::Sweep(args) => sweep::run(&args, quiet, shutdown),
        Command::SweepOrder { order } => sweep::run_order(&order),
        Command::Tap(args) => tap::run(&args, quiet, shutdown),
        Command::Validate(args) => validate::run(&args, cli.global.config.as_deref(), shutdown),
        Command::Top(args) => top::run(&args, shutdown),
        Command::Verify(args) => verify::run(&args, verbose, shutdown),
        Command::VerifyConsumer(args) => verify::consume(&args, shutdown),
        Command::VerifyProducer(args) => verify::produce(&args, shutdown),
        Command::Send(args) => send::run(&args, quiet, shutdown),
        Command::Demo(args) => demo::run(&args, quiet, shutdown),
    }
}

/// Prints a completion script for a shell.
fn completions(shell: Shell) -> Result<Code, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "baler", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Code::Done)
}

/// Writes a manual page for the program and for each command.
fn man(folder: &Path) -> Result<Code, Failure> {
    let made = fs::create_dir_all(folder);
    let written = made.and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map_err(|error| {
        let message = format!("cannot write manual pages to {}: {error}", folder.display());
        Failure::new(Code::Output, message)
    })?;
    Ok(Code::Done)
}
