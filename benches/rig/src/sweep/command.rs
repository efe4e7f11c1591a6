//! A sweep from its arguments to its output, and the work of its child processes.

use serde::Serialize;

use super::args::SweepArgs;
use super::case::Way;
use super::cell::Cell;
use super::load::Material;
use super::model::CostModel;
use super::page::page;
use super::program::{Order, Program};
use super::reading;
use super::recommend::{Recommendation, recommend};
use super::report;
use super::run::run;
use super::user_records::{RecordsReport, UserRecords};
use super::writing;
use crate::harness::{Failure, Format, Outcome, Progress, keep, to_json};
use crate::machine::{Provenance, without_secrets};
use crate::process::{from_parent, parse_line, send_to_parent};

/// The JSON of a sweep. The names are part of the program's interface.
#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    provenance: &'a Provenance,
    /// The medium, without secrets.
    to: &'a str,
    /// The records that were sent repeatedly; `None`: calls of the workload.
    records: Option<&'a RecordsReport>,
    /// The recommendation for the first rate; `None` if no setting is within the limits.
    recommended: Option<&'a Recommendation>,
    /// One for each rate.
    recommendations: &'a [Recommendation],
    models: &'a [CostModel],
    /// The cost of the load alone, without a medium.
    controls: Vec<&'a Cell>,
    cells: Vec<&'a Cell>,
}

/// Measures and writes the results, with the records of the user if there are any. They are right
/// if every cell has its figures and nothing was lost.
///
/// # Errors
///
/// The medium cannot be reached, `progress` requested a stop, or the cells cannot be written.
pub fn command(
    args: &SweepArgs,
    own: Option<&UserRecords>,
    program: &dyn Program,
    progress: &mut Progress<'_>,
) -> Result<Outcome, Failure> {
    args.check()?;
    // Before anything loads the machine.
    let mut provenance = Provenance::this();
    let to = without_secrets(&args.to);
    for uri in args.uris() {
        provenance.command = provenance.command.replace(uri, &without_secrets(uri));
    }
    let records = own.map(|own| own.save(&args.results)).transpose()?;
    let records = records.as_ref();
    let material = Material {
        seed: args.seed,
        own: own.map_or(&[], UserRecords::records),
    };
    let all = run(args, records, program, progress)?;
    let mut compressions: Vec<&str> = all
        .iter()
        .filter_map(|cell| cell.case.compression.as_deref())
        .collect();
    compressions.sort_unstable();
    compressions.dedup();
    let mut models = Vec::new();
    for compression in compressions {
        models.extend(CostModel::fit(&all, compression, material)?);
    }
    let recommended = recommend(&all, &models, args.bounds(), material)?;
    let (controls, cells): (Vec<&Cell>, Vec<&Cell>) =
        all.iter().partition(|cell| cell.case.way == Way::Pacing);
    let whole = report::text(records, &all, &models, Some(&recommended));
    let page = page(&to, records, &all, &models, &recommended, &provenance)?;
    let json = to_json(&Document {
        provenance: &provenance,
        to: &to,
        records,
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
            let chosen = args.recommend.then_some(&*recommended);
            let shown = report::text(records, &all, &models, chosen);
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

/// Carries out an order of [`command`] in this process. It reads commands from
/// standard input until the input ends, and answers on standard output.
///
/// # Errors
///
/// The text is not an order, or the order cannot be carried out.
pub fn run_order(order: &str, program: &dyn Program) -> Result<(), Failure> {
    match parse_line(order)? {
        Order::Cluster { topic, partitions } => {
            let (address, _cluster) = program.cluster(&topic, partitions)?;
            send_to_parent(&address)?;
            let parent = from_parent::<()>();
            while parent.recv().is_ok() {}
            Ok(())
        }
        Order::Read(uri) => reading::read(&uri, program),
        Order::Write(writing) => writing::write(&writing, program),
    }
}
