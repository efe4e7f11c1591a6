//! The program `baler`: reads the command line, runs a command, ends with its exit code.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what cannot happen ends the command, and acknowledges nothing"
)]

#[cfg(feature = "kieker")]
mod adaptive;
mod args;
mod commands;
mod config;
mod decoding;
mod endpoint;
mod exit;
mod filters;
mod http_client;
mod observe;
mod output;
mod patience;
mod quarantine;
mod random;
mod relay;
mod shipping;
mod shutdown;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use args::Cli;
use exit::{Code, Failure};
use shutdown::Shutdown;

fn main() -> ExitCode {
    // The panic hook has printed the panic. The program still has to end with the documented code.
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    result.unwrap_or_else(|_| panicked()).into()
}

fn run() -> Code {
    let (result, has_panicked) = match start() {
        Ok((cli, shutdown)) => (commands::run(cli, &shutdown), shutdown.has_panicked()),
        Err(failure) => (Err(failure), false),
    };
    let code = result.unwrap_or_else(|failure| {
        if !failure.message.is_empty() {
            output::say(format_args!("error: {failure}"));
        }
        failure.code
    });
    match has_panicked {
        true => panicked(),
        false => code,
    }
}

fn start() -> Result<(Cli, Shutdown), Failure> {
    let cli = Cli::read()?;
    output::start_logging(&cli.global)?;
    let shutdown = Shutdown::new(cli.global.shutdown_timeout);
    let deadline = shutdown.clone();
    output::stop_waiting_when(move || deadline.is_over());
    shutdown.request_on_panic();
    shutdown
        .listen()
        .map_err(|error| Failure::new(Code::Internal, format!("cannot handle signals: {error}")))?;
    Ok((cli, shutdown))
}

/// Reports that a thread panicked, whatever the command returned.
fn panicked() -> Code {
    output::say("error: the program panicked: this is a fault of baler, please report it");
    Code::Internal
}
