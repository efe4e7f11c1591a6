//! Logs of the program and its crates, on standard error.

use tracing_subscriber::EnvFilter;

use super::terminal::{self, LogOutput};
use crate::args::GlobalArgs;
use crate::exit::Failure;

/// The variable with tracing's directives.
const VARIABLE: &str = "BALER_LOG";

/// Starts logging as `-v`, `-q` and `BALER_LOG` say.
///
/// # Errors
///
/// `BALER_LOG` is no list of directives.
pub(crate) fn start(args: &GlobalArgs) -> Result<(), Failure> {
    // What the brokers' client libraries log, the connectors tell as errors of their own where it
    // matters.
    let level = match (args.quiet, args.verbose) {
        (true, _) => "error,lapin=off,librdkafka=off,rdkafka=off",
        (false, 0) => "warn,lapin=off,librdkafka=off,rdkafka=off",
        (false, 1) => "info,lapin=off,librdkafka=off,rdkafka=off",
        (false, 2) => "debug",
        (false, _) => "trace",
    };
    let filter = match std::env::var(VARIABLE) {
        Ok(directives) => {
            let alone = EnvFilter::try_new(&directives).map_err(|error| {
                Failure::configuration(format!(
                    "{VARIABLE}={directives}: {error}; write a level (error, warn, info, debug, \
                     trace) or directives such as baler_monitoring=debug"
                ))
            })?;
            if args.verbose > 0 {
                // Of two directives for the same target the later one counts.
                EnvFilter::new(format!("{level},{directives}"))
            } else {
                alone
            }
        }
        Err(_) => EnvFilter::new(level),
    };
    let has_colours = terminal::has_colours();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(has_colours)
        .with_writer(move || LogOutput { has_colours })
        .init();
    Ok(())
}
