//! Whether anything grows: a writing and a reading process at a steady rate for a long time, with
//! a medium that restarts every minute.
//!
//! ```text
//! child: numbered records -> controller -> writer ~~ medium ~~ reader -> decode -> seen? :child
//!    ^ memory, descriptors, threads              ^ restarts        ^ memory, descriptors, threads
//! ```

mod ends;
mod endurance;
mod medium;
mod row;
mod seen;

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use baler_rig::harness::{Format, Results};
use baler_rig::machine::Provenance;
use clap::{Parser, ValueEnum as _};

use crate::{Failure, Outcome};
pub use ends::child;
use endurance::endure;
pub use medium::Medium;
pub use row::Row;
use row::{rows, table};

/// Memory, descriptors and threads of both ends of connectors over a long time with restarts.
#[derive(Debug, Clone, Parser)]
#[command(name = "soak", version)]
pub struct Args {
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Soak this medium only; may be given several times. All of them run at the same time
    #[arg(long, value_enum, value_name = "NAME")]
    pub only: Vec<Medium>,

    /// How long, in seconds, the warm-up included
    #[arg(long, value_name = "N", default_value = "1440")]
    pub seconds: NonZeroU64,

    /// How often the medium restarts, in seconds
    #[arg(long, value_name = "N", default_value = "60")]
    pub restart_every: NonZeroU64,

    /// How many restarts are warm-up, with bursts; the slopes begin after them
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub warm_up: u32,

    /// Records a second
    #[arg(long, value_name = "N", default_value = "20000")]
    pub rate: NonZeroU32,

    /// Where the files are [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Also write the rows and the table, with machine, command and commit, into this folder
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
}

impl Args {
    fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds.get())
    }

    fn restart_every(&self) -> Duration {
        Duration::from_secs(self.restart_every.get())
    }
}

/// Soaks the requested media, all at the same time. The outcome is right if everything is steady and
/// complete.
///
/// # Errors
///
/// A medium does not start, or fails for good.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let provenance = Provenance::this();
    let media = match args.only.as_slice() {
        [] => Medium::value_variants(),
        only => only,
    };
    let mut all = Vec::new();
    thread::scope(|scope| {
        let threads: Vec<_> = media
            .iter()
            .map(|medium| (medium, scope.spawn(|| endure(*medium, args))))
            .collect();
        for (medium, thread) in threads {
            let endured = thread
                .join()
                .map_err(|_| Failure::new("a soaking thread panicked"))?;
            let endured = endured.map_err(Failure::cannot(medium.name()))?;
            all.extend(rows(*medium, args, &endured));
        }
        Ok::<(), Failure>(())
    })?;
    let results = Results {
        name: "soak",
        provenance: &provenance,
        rows: &all,
    };
    let text = table(&all);
    let kept = args.results.as_deref().map(|folder| (folder, &[][..]));
    Ok(Outcome {
        text: results.write(args.format, text, kept)?,
        is_right: all.iter().all(|row| row.steady && row.complete),
    })
}
