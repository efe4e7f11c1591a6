//! A measurement from its arguments to its output.

use std::io::Write;

use super::args::OverheadArgs;
use super::count;
use super::row::{Row, chart, page_body, table};
use super::run::{Origin, run};
use super::variant::Variant;
use crate::harness::{Failure, Progress, Results, print};
use crate::machine::Provenance;
use crate::report::{self, Column};

/// Measures, prints the rows to `out` and writes the results; returns whether every row has its
/// figures.
///
/// # Errors
///
/// A requested variant does not exist, `progress` said to stop, or the rows cannot be written.
pub fn command(
    args: &OverheadArgs,
    origin: &Origin<'_>,
    provenance: &Provenance,
    progress: &mut Progress<'_>,
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    if args.list {
        print(&list(origin.variants), out)?;
        return Ok(true);
    }
    let plan = args.plan(origin.variants)?;
    let rows = run(&plan, origin, progress)?;
    let mut text = table(&rows);
    if plan.instructions && !count::is_possible() {
        text.push_str("instructions were not counted: install valgrind\n");
    }
    let results = Results {
        name: "overhead",
        provenance,
        rows: &rows,
    };
    let svg = chart(&rows)?;
    let heading = "What a probe costs the application";
    let page = report::page(heading, &page_body(&rows, &svg), provenance);
    let files = [("svg", &*svg), ("html", &page)];
    let kept = args.results.as_deref().map(|folder| (folder, &files[..]));
    results.write(args.format, &text, out, kept)?;
    let is_complete = |row: &Row| row.failure.is_none() && row.median_ns_per_call.is_some();
    Ok(rows.iter().all(is_complete))
}

fn list(variants: &[Variant]) -> String {
    let columns = [
        Column::text("variant", |it: &Variant| it.name.to_owned()),
        Column::text("what it measures", |it: &Variant| it.about.to_owned()),
    ];
    report::table(variants, &columns)
}
