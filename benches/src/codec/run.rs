//! Measuring all cases.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Write;
use std::time::Duration;

use baler_rig::machine::Provenance;
use baler_rig::recording::{Origin, Recording};
use baler_rig::schedule::{Found, in_rounds};

use super::args::Args;
use super::case::Case;
use super::measure::{Sample, check, measure};
use super::piece::{Input, Piece};
use super::row::{Row, table};
use crate::failure::Failure;
use crate::output::{Format, Results};

/// How long each part of a repetition takes at least: thousands of chunks of a few records, a
/// dozen of many.
const AT_LEAST: Duration = Duration::from_millis(5);

/// Measures what was asked for and prints it to `out`; whether every row was verified.
///
/// A row that fails is told as such, and the others go on.
///
/// # Errors
///
/// There are no records, or the rows cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<bool, Failure> {
    // Before anything loads the machine.
    let provenance = Provenance::this();
    let recording = recording(args)?;
    let about = format!("{}: {recording}\n", args.workload);
    if args.format == Format::Table {
        let said = writeln!(out, "{about}").and_then(|()| out.flush());
        said.map_err(Failure::cannot("print the rows"))?;
    }
    let rows = measure_all(args, &recording)?;
    let results = Results {
        name: "codec",
        provenance: &provenance,
        rows: &rows,
    };
    results.print(args.format, &|| table(&rows), out)?;
    if let Some(folder) = &args.results {
        results.keep(folder, Some(&format!("{about}\n{}", table(&rows))))?;
    }
    Ok(rows.iter().all(|row| row.verified))
}

fn recording(args: &Args) -> Result<Recording, Failure> {
    let records = args.records();
    match &args.workload {
        Origin::Generated => Ok(Recording::generated(args.seed, records, args.clock_step)),
        Origin::KiekerLog(folder) => Recording::of_log(folder, records),
        Origin::Chunks(path) => Recording::of_chunks(path, records),
    }
}

fn measure_all(args: &Args, recording: &Recording) -> Result<Vec<Row>, Failure> {
    let cases = Case::all(args);
    let mut pieces = HashMap::new();
    for case in &cases {
        if let Entry::Vacant(entry) = pieces.entry(case.chunk_records) {
            entry.insert(Piece::all(recording, case.chunk_records)?);
        }
    }
    let input = Input {
        pieces,
        executions: recording.executions(),
    };
    let at_least = if args.quick { Duration::ZERO } else { AT_LEAST };
    // In full once, so that every measured repetition yields what is known to be right.
    let checked: Vec<_> = cases.iter().map(|case| check(case, &input)).collect();
    let mut found: Vec<Found<Sample>> = checked
        .iter()
        .map(|checked| Found {
            samples: Vec::new(),
            failure: checked.as_ref().err().cloned(),
        })
        .collect();
    in_rounds(
        &cases,
        (args.repetitions(), args.seed),
        &mut found,
        &mut |_, _| true,
        |case, _| measure(case, &input, at_least),
    )?;
    let workload = args.workload.to_string();
    let records = u64::try_from(recording.calls().len()).unwrap_or(u64::MAX);
    let rows = cases.iter().zip(found).zip(checked);
    Ok(rows
        .map(|((case, found), bytes)| {
            let failure = found.failure.map(|failure| failure.to_string());
            let about = (workload.as_str(), records);
            Row::new(case, about, bytes.ok(), &found.samples, failure)
        })
        .collect())
}
