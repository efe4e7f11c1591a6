//! Self-contained chunks of the same records in every format: bytes, encoding and decoding.
//!
//! ```text
//! calls -> pieces of a chunk each -> encode -> pack -> unpack -> decode -> the same calls
//! ```
//!
//! [`Args`] -> cases -> each in every round of the schedule -> [`Row`] -> table or JSON.

mod args;
mod case;
mod formats;
mod measure;
mod packing;
mod piece;
mod row;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::time::Duration;

use baler_rig::harness::{Rounds, in_rounds};
use baler_rig::machine::Provenance;
use baler_rig::workload::{Call, Workload};

use crate::{Failure, Outcome};
pub use args::{Args, Codec};
pub use case::Case;
use measure::Work;
use piece::Piece;
pub use row::Row;
use row::table;

/// The least time of each part of a repetition: thousands of chunks of a few records, a dozen of
/// many.
const AT_LEAST: Duration = Duration::from_millis(5);

/// Measures and writes the results. They are right if every row was verified.
///
/// A row that fails contains the reason; the others continue.
///
/// # Errors
///
/// The rows cannot be written.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    // Before anything loads the machine.
    let provenance = Provenance::this();
    let default = if args.quick { 2_100 } else { 65_536 };
    let records = args.records.map_or(default, NonZeroUsize::get);
    let rows = measure_all(args, records)?;
    let text = format!("{records} records\n\n{}", table(&rows));
    Ok(Outcome {
        text: args.output.write("codec", &provenance, &rows, text, &[])?,
        is_right: rows.iter().all(|row| row.verified),
    })
}

fn measure_all(args: &Args, records: usize) -> Result<Vec<Row>, Failure> {
    let mut workload = Workload::new(args.output.seed);
    let calls: Vec<Call> = workload.by_ref().take(records).collect();
    let cases = Case::all(args);
    let mut pieces = HashMap::new();
    for case in &cases {
        if let Entry::Vacant(entry) = pieces.entry(case.chunk_records) {
            entry.insert(Piece::all(workload.names(), &calls, case.chunk_records)?);
        }
    }
    let repetitions = args
        .repetitions
        .map_or(if args.quick { 1 } else { 7 }, NonZeroUsize::get);
    let at_least = if args.quick { Duration::ZERO } else { AT_LEAST };
    let rounds = Rounds {
        repetitions,
        seed: args.output.seed,
        finished: BTreeMap::new(),
    };
    let mut bytes = HashMap::new();
    let all = in_rounds(&cases, rounds, &mut |_| true, |number, case, _| {
        let pieces = pieces.get(&case.chunk_records);
        let pieces = pieces.ok_or_else(|| Failure::new("there is no load"))?;
        let mut work = Work::new(case)?;
        if number < cases.len() {
            // In full once, so that every measured repetition returns the right records.
            bytes.insert(*case, work.check(pieces)?);
        }
        work.measure(pieces, at_least)
    })?;
    let records = records as u64;
    let rows = cases.iter().zip(all);
    Ok(rows
        .map(|(case, runs)| Row::new(case, records, bytes.get(case).copied(), &runs))
        .collect())
}

#[cfg(test)]
mod tests;
