//! A sweep from its arguments to its output.

use baler_common::transport::uri::Uri;
use serde::Serialize;

use super::args::SweepArgs;
use super::case::Way;
use super::cell::Cell;
use super::program::Program;
use super::recommend::recommend;
use super::report;
use super::run::run;
use crate::harness::{Failure, Format, Outcome, Progress, keep, to_json};
use crate::machine::Provenance;

/// The JSON of a sweep. The names are part of the program's interface.
#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    provenance: &'a Provenance,
    /// The medium, without secrets.
    to: &'a str,
    /// The recommended cell of the first rate; `None` if no setting is within the bounds.
    recommended: Option<&'a Cell>,
    /// One for each rate.
    recommendations: &'a [&'a Cell],
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
    let recommended = recommend(&all, args);
    let (controls, cells): (Vec<&Cell>, Vec<&Cell>) =
        all.iter().partition(|cell| cell.case.way == Way::Pacing);
    let json = to_json(&Document {
        provenance: &provenance,
        to: &to,
        recommended: recommended.first().copied(),
        recommendations: &recommended,
        controls,
        cells,
    })?;
    let whole = report::text(&all, Some(&recommended));
    keep(&args.results, "sweep", &[("json", &json), ("txt", &whole)])?;
    let text = match args.format {
        Format::Json => json,
        Format::Table => report::text(&all, args.recommend.then_some(&*recommended)),
    };
    let is_right = |cell: &Cell| cell.failure.is_none() && cell.lost == 0;
    Ok(Outcome {
        text,
        is_right: all.iter().all(is_right),
    })
}

/// A URI as it may be shown.
fn without_secrets(uri: &str) -> String {
    Uri::parse(uri).map_or_else(|_| "a URI".to_owned(), |uri| uri.to_string())
}
