//! Rounds of all settings, each run in a process of its own.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::CHILD;
use super::args::AutotuneArgs;
use super::reading::{self, Found, Told};
use super::row::{Sample, are_whole, rows, text};
use super::writing::{self, Writing, Written};
use crate::child::Child;
use crate::failure::Failure;
use crate::lines::{line, understand};
use crate::machine::Provenance;
use crate::output::Results;
use crate::schedule::interleaved;
use crate::statistics::to_f64;

/// What a process of its own is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Order {
    Read,
    Write(Writing),
}

/// How long a process may take beyond its load.
const PATIENCE: Duration = Duration::from_secs(120);

/// Does what a process of its own is there for, if the words of the command line say that this is
/// one.
///
/// # Errors
///
/// It is no order, or it cannot be carried out.
pub fn obey(words: &[String]) -> Option<Result<bool, Failure>> {
    match words {
        [child, order] if child == CHILD => {
            let done = understand(order).and_then(|order| match order {
                Order::Read => reading::read(),
                Order::Write(writing) => writing::write(&writing),
            });
            Some(done.map(|()| true))
        }
        _ => None,
    }
}

fn start(order: &Order) -> Result<Child, Failure> {
    let order = line(order)?;
    Child::of_this_program(&[CHILD, &order]).map_err(Failure::cannot("start a process"))
}

fn hear<T: DeserializeOwned>(child: &Child, by: Instant) -> Result<T, Failure> {
    let line = child
        .line(by)
        .map_err(Failure::cannot("hear of a process"))?;
    understand(&line)
}

fn tell(child: &mut Child, told: Told) -> Result<(), Failure> {
    child
        .tell(&line(&told)?)
        .map_err(Failure::cannot("tell a process"))
}

/// Measures, prints and keeps; whether nothing was lost.
///
/// # Errors
///
/// A process fails or says nothing, or the results cannot be written.
pub fn run(args: &AutotuneArgs, out: &mut dyn Write) -> Result<bool, Failure> {
    let provenance = Provenance::this();
    let (phases, settings) = (args.phases(), args.settings());
    let order = interleaved(settings.len(), args.rounds.get(), args.seed);
    let mut reader = start(&Order::Read)?;
    let port: u16 = hear(&reader, Instant::now() + PATIENCE)?;
    let load: f64 = phases.iter().map(|phase| phase.seconds).sum();
    let patience = PATIENCE + Duration::try_from_secs_f64(load).unwrap_or_default();
    let mut samples = Vec::new();
    for (number, setting) in order.iter().enumerate() {
        let Some(setting) = settings.get(*setting).copied() else {
            continue;
        };
        let run = u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1);
        let writing = Writing {
            port,
            setting,
            compression: args.compression.clone(),
            max_latency_ms: args.max_latency_ms.get(),
            run,
            seed: args.seed,
            phases: phases.clone(),
            warm_up_seconds: args.warm_up,
        };
        let count = phases.len();
        tell(&mut reader, Told::Begin { run, phases: count })?;
        let writer = start(&Order::Write(writing))?;
        let by = Instant::now() + patience;
        let written: Vec<Written> = hear(&writer, by)?;
        let records = written.iter().map(|phase| phase.emitted).sum();
        tell(&mut reader, Told::Report { records })?;
        let found: Vec<Found> = hear(&reader, by)?;
        writer
            .end(PATIENCE)
            .map_err(Failure::cannot("end a process"))?;
        for (phase, (written, found)) in written.into_iter().zip(found).enumerate() {
            samples.push(Sample {
                round: number / settings.len(),
                phase,
                setting,
                written,
                found,
            });
        }
        // Nothing is left to tell it to if this fails.
        let (done, all) = (number + 1, order.len());
        writeln!(io::stderr(), "{done} of {all}: {}", setting.name()).ok();
    }
    reader
        .end(PATIENCE)
        .map_err(Failure::cannot("end a process"))?;
    let bound = to_f64(u64::from(args.max_latency_ms.get()));
    let rows = rows(&samples, &phases, &settings, bound)?;
    let results = Results {
        name: "autotune",
        provenance: &provenance,
        rows: &rows,
    };
    let table = || text(&rows, bound);
    results.print_and_keep(args.format, args.results.as_deref(), &table, out)?;
    Ok(are_whole(&rows))
}
