//! A sweep from its arguments to its output.

use serde::Serialize;

use super::args::SweepArgs;
use super::case::Way;
use super::cell::Cell;
use super::model::CostModel;
use super::page::page;
use super::program::Program;
use super::recommend::{Recommendation, recommend};
use super::report;
use super::run::run;
use super::run_log::without_secrets;
use crate::harness::{Failure, Format, Outcome, Progress, keep, to_json};
use crate::machine::Provenance;

/// The JSON of a sweep. The names are part of the program's interface.
#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    provenance: &'a Provenance,
    /// The medium, without secrets.
    to: &'a str,
    /// The recommendation for the first rate; `None` if no setting is within the bounds.
    recommended: Option<&'a Recommendation>,
    /// One for each rate.
    recommendations: &'a [Recommendation],
    models: &'a [CostModel],
    /// The cost of the load by itself, without a medium.
    controls: Vec<&'a Cell>,
    cells: Vec<&'a Cell>,
}

/// Measures and writes the results. They are right if every cell has its figures and nothing was lost.
///
/// # Errors
///
/// The medium cannot be reached, `progress` said to stop, or the cells cannot be written.
pub fn command(
    args: &SweepArgs,
    program: &dyn Program,
    progress: &mut Progress<'_>,
) -> Result<Outcome, Failure> {
    args.check()?;
    // Before anything loads the machine.
    let mut provenance = Provenance::this();
    let to = without_secrets(&args.to);
    for uri in [Some(&args.to), args.from.as_ref()].into_iter().flatten() {
        provenance.command = provenance.command.replace(uri, &without_secrets(uri));
    }
    let all = run(args, program, progress)?;
    let mut compressions: Vec<&str> = all
        .iter()
        .filter_map(|cell| cell.case.compression.as_deref())
        .collect();
    compressions.sort_unstable();
    compressions.dedup();
    let mut models = Vec::new();
    for compression in compressions {
        models.extend(CostModel::fit(&all, compression, args.seed)?);
    }
    let recommended = recommend(&all, &models, args.bounds(), args.seed)?;
    let (controls, cells): (Vec<&Cell>, Vec<&Cell>) =
        all.iter().partition(|cell| cell.case.way == Way::Pacing);
    let whole = report::text(&all, &models, Some(&recommended));
    let page = page(&to, &all, &models, &recommended, &provenance)?;
    let json = to_json(&Document {
        provenance: &provenance,
        to: &to,
        recommended: recommended.first(),
        recommendations: &recommended,
        models: &models,
        controls,
        cells,
    })?;
    let files = [("json", &*json), ("txt", &whole), ("html", &page)];
    keep(&args.results, "sweep", &files)?;
    let text = match args.format {
        Format::Json => json,
        Format::Table => {
            let shown = report::text(&all, &models, args.recommend.then_some(&*recommended));
            let page = args.results.join("sweep.html");
            format!("{shown}\nreport: {}\n", page.display())
        }
    };
    let is_right = |cell: &Cell| cell.failure.is_none() && cell.lost == 0;
    Ok(Outcome {
        text,
        is_right: all.iter().all(is_right),
    })
}
