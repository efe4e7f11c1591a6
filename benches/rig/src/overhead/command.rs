//! A measurement from its arguments to its output.

use super::args::OverheadArgs;
use super::row::{Row, chart, table};
use super::run::{Origin, run};
use super::variant::Variant;
use crate::harness::{Failure, Outcome, Progress, Results};
use crate::instructions;
use crate::machine::Provenance;
use crate::report::wrapped;

/// Measures and writes the results.
///
/// # Errors
///
/// A requested variant does not exist, `progress` requested a stop, or the rows cannot be written.
pub fn command(
    args: &OverheadArgs,
    origin: &Origin<'_>,
    progress: &mut Progress<'_>,
) -> Result<Outcome, Failure> {
    if args.list {
        return Ok(Outcome {
            text: list(origin.variants),
            is_right: true,
        });
    }
    // Before anything loads the machine.
    let provenance = Provenance::this();
    let rows = run(args, origin, progress)?;
    let mut text = table(&rows);
    if args.instructions && !instructions::is_possible() {
        text.push_str("instructions were not counted: install valgrind\n");
    }
    let results = Results {
        name: "overhead",
        provenance: &provenance,
        rows: &rows,
    };
    let svg = chart(&rows)?;
    let folder = args.results.as_deref();
    let is_complete = |row: &Row| row.failure.is_none() && row.median_ns_per_call.is_some();
    Ok(Outcome {
        text: results.write(args.format, text, folder, &[("svg", &svg)])?,
        is_right: rows.iter().all(is_complete),
    })
}

fn list(variants: &[Variant]) -> String {
    let lines = variants.iter();
    let lines = lines.map(|it| wrapped(&format!("{}: {}", it.name, it.about)));
    lines.collect()
}
