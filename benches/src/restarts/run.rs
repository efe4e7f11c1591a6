//! Restarting brokers.

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use baler_rig::machine::Provenance;
use baler_rig::schedule::interleaved;

use super::args::Args;
use super::flow::Flow;
use super::row::{Round, Row, rows, table};
use crate::failure::Failure;
use crate::medium::{Medium, Running};
use crate::output::Results;

/// Measures what was asked for and prints it to `out`; whether nothing was lost.
///
/// # Errors
///
/// A broker does not start, or nothing arrives any more.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<bool, Failure> {
    let provenance = Provenance::this();
    let mut all = Vec::new();
    for medium in args.media() {
        all.extend(measure(medium, args)?);
    }
    let results = Results {
        name: "restarts",
        provenance: &provenance,
        rows: &all,
    };
    let folder = args.results.as_deref();
    results.print_and_keep(args.format, folder, &|| table(&all), out)?;
    Ok(all.iter().all(|row| row.missing == 0))
}

fn measure(medium: Medium, args: &Args) -> Result<Vec<Row>, Failure> {
    // The outages are spread evenly, in a random order.
    let count = usize::try_from(args.rounds.get()).unwrap_or(usize::MAX);
    let order = interleaved(count, 1, args.seed);
    let mut running = Running::start(medium, Path::new(""))?;
    let flow = Flow::start(&running.writer_uri(), &running.reader_uri())?;
    flow.latency()?;
    running.sync()?;
    let mut rounds = Vec::new();
    let mut terminal = Some(io::stderr()).filter(io::Stderr::is_terminal);
    for (number, place) in order.into_iter().enumerate() {
        if let Some(terminal) = &mut terminal {
            // Only decoration.
            write!(terminal, "\r{} {number} of {count} ", medium.name()).ok();
        }
        let hard = medium == Medium::Amqp && number % 2 == 1;
        wait(Duration::from_millis(args.stays.into()));
        running.down(hard)?;
        let down = Instant::now();
        let more =
            u64::from(args.away) * u64::try_from(place).unwrap_or(0) / u64::from(args.rounds.get());
        wait(Duration::from_millis(more));
        running.up()?;
        let away = down.elapsed();
        rounds.push(Round::new(hard, away, flow.latency()?));
    }
    let account = flow.end()?;
    rows(medium.name(), &rounds, account)
}

/// Lets a state last; nothing is waited for.
fn wait(time: Duration) {
    let by = Instant::now() + time;
    while let Some(left) = by.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}
