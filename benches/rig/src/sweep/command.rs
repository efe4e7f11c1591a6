//! A sweep from what was typed to what is printed and kept.

use std::fs;
use std::io::Write;

use serde::Serialize;

use super::args::{SweepArgs, SweepFormat};
use super::case::Way;
use super::cell::Cell;
use super::model::CostModel;
use super::page::page;
use super::program::Program;
use super::recommend::{Recommendation, recommend};
use super::run::{Found, Progress, run, without_secrets};
use super::table;
use crate::failure::Failure;
use crate::machine::{Machine, Provenance};

/// What a sweep tells programs. The names are part of the program's interface.
#[derive(Debug, Serialize)]
struct Document<'a> {
    machine: &'a Machine,
    command: &'a str,
    commit: Option<&'a str>,
    optimised: bool,
    unix_seconds: u64,
    /// The medium, without secrets.
    to: &'a str,
    /// How much the CPU times of runs resemble those of the runs before, from 0 to 0.8; their intervals
    /// are wider by what follows from it.
    cpu_autocorrelation: f64,
    /// What to set at the first rate; nothing if nothing keeps to the bounds.
    recommended: Option<&'a Recommendation>,
    /// What to set at each rate.
    recommendations: &'a [Recommendation],
    models: &'a [CostModel],
    /// What the load costs by itself, before any medium.
    controls: Vec<&'a Cell>,
    cells: Vec<&'a Cell>,
}

/// Measures what was asked for, prints the cells to `out` and keeps them; whether every one has its
/// figures and nothing was lost.
///
/// # Errors
///
/// The medium cannot be reached, `progress` said to stop, or the cells cannot be written.
pub fn command(
    args: &SweepArgs,
    program: &dyn Program,
    provenance: &Provenance,
    progress: &mut Progress<'_>,
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    args.check()?;
    let plan = args.plan();
    let to = without_secrets(&args.to);
    let mut provenance = provenance.clone();
    for uri in [Some(&args.to), args.from.as_ref()].into_iter().flatten() {
        provenance.command = provenance.command.replace(uri, &without_secrets(uri));
    }
    let Found {
        cells,
        autocorrelation,
    } = run(&plan, &args.results, program, progress)?;
    let mut compressions: Vec<&str> = cells
        .iter()
        .filter_map(|cell| cell.case.compression.as_deref())
        .collect();
    compressions.sort_unstable();
    compressions.dedup();
    let mut models = Vec::new();
    for compression in compressions {
        models.extend(CostModel::fit(&cells, compression, args.seed)?);
    }
    let recommended = recommend(&cells, &models, args.bounds(), args.seed)?;
    let document = Document {
        machine: &provenance.machine,
        command: &provenance.command,
        commit: provenance.commit.as_deref(),
        optimised: provenance.optimised,
        unix_seconds: provenance.unix_seconds,
        to: &to,
        cpu_autocorrelation: autocorrelation,
        recommended: recommended.first(),
        recommendations: &recommended,
        models: &models,
        controls: cells
            .iter()
            .filter(|it| it.case.way == Way::Pacing)
            .collect(),
        cells: cells
            .iter()
            .filter(|it| it.case.way != Way::Pacing)
            .collect(),
    };
    let json = serde_json::to_string_pretty(&document).map_err(Failure::cannot("write JSON"))?;
    let json = json + "\n";
    let measured: Vec<Cell> = document.cells.iter().copied().cloned().collect();
    let csv = table::csv(&measured);
    let text = |advice| table::text(&cells, autocorrelation, &models, advice);
    let shown = text(args.recommend.then_some(&*recommended));
    let whole = text(Some(&recommended));
    let page = page(&to, &measured, &recommended, &whole, &provenance)?;
    for (name, text) in [
        ("sweep.json", &json),
        ("sweep.csv", &csv),
        ("sweep.txt", &whole),
        ("sweep.html", &page),
    ] {
        let written = fs::write(args.results.join(name), text);
        written.map_err(Failure::cannot("write the results"))?;
    }
    let text = match args.format {
        SweepFormat::Csv => csv,
        SweepFormat::Json => json,
        SweepFormat::Table => {
            let report = args.results.join("sweep.html");
            format!("{shown}\nreport: {}\n", report.display())
        }
    };
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(Failure::cannot("print the cells"))?;
    let is_right = |cell: &Cell| cell.failure.is_none() && cell.lost == 0;
    Ok(cells.iter().all(is_right))
}
