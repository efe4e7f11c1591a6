//! Measuring all cases.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;

use baler_rig::machine::Provenance;
use baler_rig::schedule::interleaved;

use super::args::Args;
use super::case::{Case, Part};
use super::load::Load;
use super::row::{Row, Sample, table};
use super::{codec, media};
use crate::failure::Failure;
use crate::output::Results;

/// Measures what was asked for and prints it to `out`; whether every row was verified.
///
/// A row that fails is told as such, and the others go on.
///
/// # Errors
///
/// The load cannot be made, or the rows cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<bool, Failure> {
    // Before anything loads the machine.
    let provenance = Provenance::this();
    let rows = measure(args)?;
    let results = Results {
        name: "pipeline",
        provenance: &provenance,
        rows: &rows,
    };
    results.print(args.format, &|| table(&rows), out)?;
    if let Some(folder) = &args.results {
        results.keep(folder, None)?;
    }
    Ok(rows.iter().all(|row| row.verified))
}

/// What was found out of one case so far.
#[derive(Default)]
struct Progress {
    samples: Vec<Sample>,
    failure: Option<Failure>,
}

fn measure(args: &Args) -> Result<Vec<Row>, Failure> {
    let cases = Case::all(args);
    let folder = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let bench = Bench::new(args, &cases, folder)?;
    let mut progress: Vec<Progress> = cases.iter().map(|_| Progress::default()).collect();
    let order = interleaved(cases.len(), args.repetitions(), args.seed);
    // A terminal is told how far it is; a file or a pipe is not.
    let mut terminal = Some(io::stderr()).filter(io::Stderr::is_terminal);
    // Once unmeasured, so that no measured repetition is the first: checks that take time that
    // would be measured are made there.
    for (case, progress) in cases.iter().zip(&mut progress) {
        progress.failure = bench.warm_up(case).err();
    }
    for (number, index) in order.iter().enumerate() {
        if let Some(terminal) = &mut terminal {
            // Only decoration.
            write!(terminal, "\r{number} of {} ", order.len()).ok();
        }
        let (Some(case), Some(progress)) = (cases.get(*index), progress.get_mut(*index)) else {
            continue;
        };
        if progress.failure.is_none() {
            match bench.measure(case) {
                Ok(sample) => progress.samples.push(sample),
                Err(failure) => progress.failure = Some(failure),
            }
        }
    }
    if let Some(terminal) = &mut terminal {
        write!(terminal, "\r\x1b[K").ok();
    }
    let rows = cases.iter().zip(progress);
    Ok(rows
        .map(|(case, Progress { samples, failure })| {
            let failure = failure.map(|failure| failure.to_string());
            Row::new(case, bench.records, &samples, failure)
        })
        .collect())
}

/// What all cases share.
struct Bench {
    /// By number of threads.
    loads: BTreeMap<usize, Load>,
    records: u64,
    folder: PathBuf,
}

impl Bench {
    fn new(args: &Args, cases: &[Case], folder: PathBuf) -> Result<Self, Failure> {
        let mut loads = BTreeMap::new();
        for case in cases {
            if let Entry::Vacant(entry) = loads.entry(case.threads) {
                entry.insert(Load::new(args.seed, args.records(), case.threads)?);
            }
        }
        Ok(Self {
            loads,
            records: u64::try_from(args.records()).unwrap_or(u64::MAX),
            folder,
        })
    }

    fn load(&self, case: &Case) -> Result<&Load, Failure> {
        let load = self.loads.get(&case.threads);
        load.ok_or_else(|| Failure::new("there is no load"))
    }

    fn warm_up(&self, case: &Case) -> Result<(), Failure> {
        match case.part {
            Part::Emit | Part::Null => media::null_in_full(case, self.load(case)?),
            _ => self.measure(case).map(drop),
        }
    }

    fn measure(&self, case: &Case) -> Result<Sample, Failure> {
        let load = self.load(case)?;
        match case.part {
            Part::Emit | Part::Null => media::null(case, load),
            Part::Encode => codec::encode(case, load),
            Part::Decode => codec::decode(case, load),
            Part::File => media::file(case, load, &self.folder),
            Part::FileRead => media::file_read(case, load, &self.folder),
            Part::Tcp => media::tcp(case, load),
        }
    }
}
