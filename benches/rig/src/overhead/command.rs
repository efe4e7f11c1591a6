//! A measurement from what was typed to what is printed and kept.

use std::fs;
use std::io::Write;

use super::args::OverheadArgs;
use super::chart::{page, svg};
use super::row::{Row, table};
use super::run::{Origin, Progress, run};
use super::{count, variant::Variant};
use crate::failure::Failure;
use crate::machine::Provenance;
use crate::output::Results;
use crate::report::TextTable;

/// Measures what was asked for, prints the rows to `out` and keeps them; whether every row has its
/// figures.
///
/// # Errors
///
/// A variant was asked for that there is not, `progress` said to stop, or the rows cannot be written.
pub fn command(
    args: &OverheadArgs,
    origin: &Origin<'_>,
    provenance: &Provenance,
    progress: &mut Progress<'_>,
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    if args.list {
        let told = out.write_all(list(origin.variants).as_bytes());
        told.map_err(Failure::cannot("print the list"))?;
        return Ok(true);
    }
    let plan = args.plan(origin.variants)?;
    let rows = run(&plan, origin, progress)?;
    let results = Results {
        name: "overhead",
        provenance,
        rows: &rows,
    };
    let text = || {
        let mut text = table(&rows);
        if plan.instructions && !count::is_possible() {
            text.push_str("instructions were not counted: there is no valgrind\n");
        }
        text
    };
    results.print(args.format, &text, out)?;
    if let Some(folder) = &args.results {
        results.keep(folder, Some(&text()))?;
        for (name, drawn) in [
            ("overhead.svg", svg(&rows)?),
            ("overhead.html", page(&rows, &text(), provenance)?),
        ] {
            let written = fs::write(folder.join(name), drawn);
            written.map_err(Failure::cannot("write a chart"))?;
        }
    }
    Ok(rows.iter().all(is_complete))
}

fn is_complete(row: &Row) -> bool {
    row.failure.is_none() && row.median_ns_per_call.is_some()
}

fn list(variants: &[Variant]) -> String {
    let mut table = TextTable::new(&[("variant", true), ("what it measures", true)]);
    for variant in variants {
        table.push(vec![variant.name.to_owned(), variant.about.to_owned()]);
    }
    table.render()
}
