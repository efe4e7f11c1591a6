//! The runs of a sweep, written as they end, so that an interrupted sweep can continue.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::args::SweepArgs;
use super::cell::Sample;
use super::user_records::RecordsReport;
use crate::harness::Failure;
use crate::machine::without_secrets;
use crate::process::to_line;

/// The file of finished runs. Its first line is the plan.
#[derive(Debug)]
pub(super) struct RunLog(File);

/// The last line of a finished sweep. The same command then begins a new one.
pub(super) const FINISHED: &str = "\"finished\"";

/// A finished run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FinishedRun {
    /// Its position in the schedule.
    pub(super) number: usize,
    /// Its result, or the reason why there is none.
    pub(super) result: Result<Sample, String>,
}

/// Results by number of the run.
pub(super) type Finished = BTreeMap<usize, Result<Sample, Failure>>;

impl RunLog {
    /// Opens the file in this folder. Returns the runs of an interrupted sweep with the same plan.
    /// Runs of another plan, or of a finished sweep, are overwritten.
    pub(super) fn open(folder: &Path, plan: &str) -> Result<(Self, Finished), Failure> {
        let failed = Failure::cannot("write the runs");
        fs::create_dir_all(folder).map_err(&failed)?;
        let path = folder.join("sweep-runs.jsonl");
        let lines: Vec<String> = File::open(&path).map_or_else(
            |_| Vec::new(),
            |file| BufReader::new(file).lines().map_while(Result::ok).collect(),
        );
        // Written again: a line that the interruption cut must not stay in the middle.
        let mut log = Self(File::create(&path).map_err(&failed)?);
        log.write(plan)?;
        let mut finished = Finished::new();
        if let Some((first, runs)) = lines.split_first()
            && first == plan
            && runs.iter().all(|line| line != FINISHED)
        {
            for line in runs {
                let Ok(run) = serde_json::from_str::<FinishedRun>(line) else {
                    break;
                };
                log.write(line)?;
                finished.insert(run.number, run.result.map_err(Failure::new));
            }
        }
        Ok((log, finished))
    }

    pub(super) fn write(&mut self, line: &str) -> Result<(), Failure> {
        // In one call, so that an interruption cuts at most one line.
        let written = self.0.write_all(format!("{line}\n").as_bytes());
        written.map_err(Failure::cannot("write the runs"))
    }
}

/// The plan of a sweep as text, without secrets. A sweep with the same plan can continue an interrupted
/// one.
pub(super) fn fingerprint(
    args: &SweepArgs,
    records: Option<&RecordsReport>,
) -> Result<String, Failure> {
    to_line(&(
        without_secrets(&args.to),
        records,
        args.from.as_deref().map(without_secrets),
        args.cases(),
        args.repetitions,
        (args.seconds, args.warm_up, args.seed),
        // A restarted broker is another process, but the sweep is the same.
        args.broker_pid.is_some(),
    ))
}

#[cfg(test)]
mod tests;
