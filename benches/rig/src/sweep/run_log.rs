//! Runs are written to a file as they end, so that an interrupted sweep can go on.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::sample::Sample;
use crate::failure::Failure;
use crate::lines::to_line;

/// The file in the folder of results.
const NAME: &str = "sweep-runs.jsonl";

/// The last line of a finished sweep.
const FINISHED: &str = "\"finished\"";

/// A finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FinishedRun {
    /// Its place in the schedule.
    pub(super) number: usize,
    /// Its case.
    pub(super) case: usize,
    /// Its result, or why there is none.
    pub(super) result: Result<Sample, String>,
}

/// The file of finished runs. Its first line is the plan.
#[derive(Debug)]
pub(super) struct RunLog {
    file: File,
}

impl RunLog {
    /// Opens the file in this folder; yields the runs of an interrupted sweep with the same plan.
    /// Runs of another plan, or of a finished sweep, are overwritten.
    pub(super) fn open(folder: &Path, plan: &str) -> Result<(Self, Vec<FinishedRun>), Failure> {
        let failed = Failure::cannot("write the runs");
        fs::create_dir_all(folder).map_err(&failed)?;
        let path = folder.join(NAME);
        let runs = File::open(&path)
            .ok()
            .and_then(|file| read(file, plan))
            .unwrap_or_default();
        // Written anew: a line that the interruption cut must not stay in the middle.
        let mut log = Self {
            file: File::create(&path).map_err(&failed)?,
        };
        log.write(plan)?;
        for run in &runs {
            log.add(run)?;
        }
        Ok((log, runs))
    }

    /// Adds a run.
    pub(super) fn add(&mut self, run: &FinishedRun) -> Result<(), Failure> {
        self.write(&to_line(run)?)
    }

    /// Marks the sweep as finished: the same command begins another one.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.write(FINISHED)?;
        let synced = self.file.sync_all();
        synced.map_err(Failure::cannot("write the runs"))
    }

    fn write(&mut self, line: &str) -> Result<(), Failure> {
        // In one call, so that an interruption cuts one line at most.
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.map_err(Failure::cannot("write the runs"))
    }
}

/// The runs in a file, up to a line that was cut; `None` if it has another plan or is finished.
fn read(file: File, plan: &str) -> Option<Vec<FinishedRun>> {
    let mut lines = BufReader::new(file).lines().map_while(Result::ok);
    if lines.next()? != plan {
        return None;
    }
    let mut runs = Vec::new();
    for line in lines {
        if line == FINISHED {
            return None;
        }
        match serde_json::from_str(&line) {
            Ok(run) => runs.push(run),
            Err(_) => break,
        }
    }
    Some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: usize) -> FinishedRun {
        FinishedRun {
            number,
            case: number % 3,
            result: match number {
                1 => Err("it broke".to_owned()),
                _ => Ok(Sample::default()),
            },
        }
    }

    #[test]
    fn an_interrupted_sweep_is_found_again_and_another_or_a_finished_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let open = |plan| RunLog::open(folder.path(), plan).unwrap();
        let (mut log, runs) = open("\"a\"");
        assert!(runs.is_empty());
        for number in 0..3 {
            log.add(&run(number)).unwrap();
        }
        // The last line is cut.
        let path = folder.path().join(NAME);
        let mut text = fs::read(&path).unwrap();
        text.truncate(text.len() - 9);
        fs::write(&path, text).unwrap();
        let (mut log, runs) = open("\"a\"");
        assert_eq!(runs, [run(0), run(1)]);
        log.add(&run(2)).unwrap();
        let (mut log, runs) = open("\"a\"");
        assert_eq!(runs.len(), 3);
        log.finish().unwrap();
        assert!(open("\"a\"").1.is_empty());
        open("\"a\"").0.add(&run(0)).unwrap();
        assert!(open("\"b\"").1.is_empty());
    }
}
