//! Standard error, with a deadline for waiting, and the logs of the program on it.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use baler_analysis::text::escape_but;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

use super::progress;
use crate::args::GlobalArgs;
use crate::exit::Failure;

/// The variable with tracing's directives.
const VARIABLE: &str = "BALER_LOG";

/// How often a waiting thread checks the deadline.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The number of bytes that a pipe takes without waiting when it is ready: `PIPE_BUF` of Linux.
const PIPE_BYTES: usize = 4_096;

/// Whether the deadline is over.
static IS_OVER: OnceLock<Box<dyn Fn() -> bool + Send + Sync>> = OnceLock::new();

/// Held by the writing thread, so that no other thread takes the room that `poll` reported.
static TURN: Mutex<()> = Mutex::new(());

/// Ends all waiting for standard error once the deadline is over.
pub(crate) fn stop_waiting_when(is_over: impl Fn() -> bool + Send + Sync + 'static) {
    // The program has only one shutdown.
    IS_OVER.set(Box::new(is_over)).ok();
}

/// Standard error. Writing waits for the reader, but not beyond the deadline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr = io::stderr();
        let tick = Timespec::try_from(POLL_INTERVAL).map_err(io::Error::other)?;
        loop {
            let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
            // The event may be an error, which the write then returns.
            if poll(&mut fds, Some(&tick)).or_else(interrupted)? > 0 {
                let slice = bytes.get(..PIPE_BYTES).unwrap_or(bytes);
                return (&stderr).write_all(slice).map(|()| slice.len());
            }
            if IS_OVER.get().is_some_and(|is_over| is_over()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn interrupted(error: rustix::io::Errno) -> io::Result<usize> {
    match error {
        rustix::io::Errno::INTR => Ok(0),
        other => Err(other.into()),
    }
}

/// Starts logging as `-v`, `-q` and `BALER_LOG` say. With `-v` or `BALER_LOG`, each line has its time
/// and module. Otherwise it looks like the other messages of the program.
///
/// # Errors
///
/// `BALER_LOG` is no list of directives.
pub(crate) fn start_logging(args: &GlobalArgs) -> Result<(), Failure> {
    // Logs of the brokers' client libraries are off. The connectors report the important ones as
    // errors of their own.
    let level = match (args.quiet, args.verbose) {
        (true, _) => "error,lapin=off,librdkafka=off,rdkafka=off",
        // A queue that is created may be one with a mistyped name.
        (false, 0) => "warn,baler_connector_amqp=info,lapin=off,librdkafka=off,rdkafka=off",
        (false, 1) => "info,lapin=off,librdkafka=off,rdkafka=off",
        (false, 2) => "debug",
        (false, _) => "trace",
    };
    let own = std::env::var(VARIABLE).ok();
    let directives = match &own {
        Some(own) if args.verbose == 0 => own.clone(),
        // If two directives name the same target, the later one counts.
        Some(own) => format!("{level},{own}"),
        None => level.to_owned(),
    };
    let filter: Targets = directives.parse().map_err(|error| {
        let own = own
            .as_deref()
            .expect("the directives of this program are right");
        Failure::configuration(format!(
            "{VARIABLE}={own}: {error}; write a level (error, warn, info, debug, trace) or \
             directives such as baler_monitoring=debug"
        ))
    })?;
    let has_colours = has_colours();
    let layer = || {
        tracing_subscriber::fmt::layer()
            .with_ansi(has_colours)
            .with_writer(move || LogOutput { has_colours })
    };
    let is_plain = own.is_none() && args.verbose == 0;
    let output = match is_plain {
        true => layer().event_format(PlainFormat).boxed(),
        false => layer().boxed(),
    };
    tracing_subscriber::registry()
        .with(output)
        .with(filter)
        .init();
    let installed = log::set_logger(&ClientLog);
    installed.expect("this function is called once");
    log::set_max_level(log::LevelFilter::Trace);
    Ok(())
}

/// The form of a line without time and module: `warning: what happened name=value`.
struct PlainFormat;

impl<S, F> FormatEvent<S, F> for PlainFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    F: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, F>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let name = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "note",
            Level::DEBUG | Level::TRACE => "debug",
        };
        write!(writer, "{name}: ")?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// The target of what librdkafka logs.
const CLIENT: &str = "librdkafka";

/// Passes what librdkafka logs on to `tracing`. Its crate uses `log`.
struct ClientLog;

impl log::Log for ClientLog {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        match metadata.level() {
            log::Level::Error => tracing::enabled!(target: CLIENT, Level::ERROR),
            log::Level::Warn => tracing::enabled!(target: CLIENT, Level::WARN),
            log::Level::Info => tracing::enabled!(target: CLIENT, Level::INFO),
            log::Level::Debug => tracing::enabled!(target: CLIENT, Level::DEBUG),
            log::Level::Trace => tracing::enabled!(target: CLIENT, Level::TRACE),
        }
    }

    fn log(&self, record: &log::Record<'_>) {
        let text = record.args();
        match record.level() {
            log::Level::Error => tracing::error!(target: CLIENT, "{text}"),
            log::Level::Warn => tracing::warn!(target: CLIENT, "{text}"),
            log::Level::Info => tracing::info!(target: CLIENT, "{text}"),
            log::Level::Debug => tracing::debug!(target: CLIENT, "{text}"),
            log::Level::Trace => tracing::trace!(target: CLIENT, "{text}"),
        }
    }

    fn flush(&self) {}
}

/// Whether standard error shows colours: it is a terminal, and NO_COLOR (<https://no-color.org>) is
/// not set.
fn has_colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && io::stderr().is_terminal()
}

/// Standard error for logs. Each write is one event, which is one line.
#[derive(Debug)]
struct LogOutput {
    has_colours: bool,
}

impl Write for LogOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let event = text.strip_suffix('\n').unwrap_or(&text);
        // Colours are escape sequences; those in a message are escaped already.
        let safe = escape_but(event, |letter| {
            letter == '\t' || (letter == '\x1b' && self.has_colours)
        });
        let line = format!("{safe}\n");
        progress::suspended(|| Stderr.write_all(line.as_bytes()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
