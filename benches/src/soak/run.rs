//! Soaking all media.

use std::io::Write;
use std::thread;

use baler_rig::machine::Provenance;

use super::args::Args;
use super::endurance::endure;
use super::row::{rows, table};
use crate::failure::Failure;
use crate::output::Results;

/// Soaks what was asked for, all at the same time, and prints it to `out`; whether everything is
/// steady and complete.
///
/// # Errors
///
/// A medium does not start, or fails for good.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<bool, Failure> {
    let provenance = Provenance::this();
    let folder = &args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let mut media = Vec::new();
    thread::scope(|scope| {
        let threads: Vec<_> = args
            .media()
            .into_iter()
            .map(|medium| (medium, scope.spawn(move || endure(medium, args, folder))))
            .collect();
        for (medium, thread) in threads {
            let endured = thread
                .join()
                .map_err(|_| Failure::new("a soaking thread panicked"))?;
            media.push((medium, endured.map_err(Failure::cannot(medium.name()))?));
        }
        Ok::<(), Failure>(())
    })?;
    let rows: Vec<_> = media
        .iter()
        .flat_map(|(medium, endured)| rows(*medium, args, endured))
        .collect();
    let results = Results {
        name: "soak",
        provenance: &provenance,
        rows: &rows,
    };
    let folder = args.results.as_deref();
    results.print_and_keep(args.format, folder, &|| table(&rows), out)?;
    Ok(rows.iter().all(|row| row.steady && row.complete))
}
