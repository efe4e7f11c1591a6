//! Runs that are kept as they end, so that an interrupted sweep goes on where it was.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::sample::Sample;
use crate::failure::Failure;

/// The file in the folder of results.
const NAME: &str = "sweep-runs.jsonl";

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Its place in the schedule.
    pub(super) number: usize,
    /// Its case.
    pub(super) case: usize,
    /// What it told, or what was wrong.
    pub(super) result: Result<Sample, String>,
}

/// The first line: what the runs are of.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    /// Everything that decides what is measured.
    plan: String,
}

/// The last line of a sweep that was finished.
const FINISHED: &str = "\"finished\"";

/// The file in which runs are kept.
#[derive(Debug)]
pub(super) struct Keeper {
    file: File,
}

impl Keeper {
    /// Opens the file in this folder; yields the runs of a sweep with the same plan that was
    /// interrupted. Those of another one, or of one that was finished, are written over.
    pub(super) fn open(folder: &Path, plan: &str) -> Result<(Self, Vec<Kept>), Failure> {
        let failed = Failure::cannot("keep runs");
        fs::create_dir_all(folder).map_err(&failed)?;
        let path = folder.join(NAME);
        let kept = File::open(&path)
            .ok()
            .and_then(|file| read(file, plan))
            .unwrap_or_default();
        // Written anew: a line that was cut by the interruption must not stay in the middle.
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(&path)
            .map_err(&failed)?;
        let mut keeper = Self { file };
        keeper.line(&Head {
            plan: plan.to_owned(),
        })?;
        for run in &kept {
            keeper.add(run)?;
        }
        Ok((keeper, kept))
    }

    /// Keeps a run.
    pub(super) fn add(&mut self, run: &Kept) -> Result<(), Failure> {
        self.line(run)
    }

    /// The sweep is finished: the same command begins another one.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        let written = writeln!(self.file, "{FINISHED}").and_then(|()| self.file.sync_all());
        written.map_err(Failure::cannot("keep runs"))
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).map_err(Failure::cannot("write JSON"))?;
        // In one call, so that an interruption cuts a line at most.
        let written = self.file.write_all(format!("{text}\n").as_bytes());
        written.map_err(Failure::cannot("keep runs"))
    }
}

/// The runs in a file of this plan, up to a line that was cut; nothing if it is another's or
/// finished.
fn read(file: File, plan: &str) -> Option<Vec<Kept>> {
    let mut lines = BufReader::new(file).lines().map_while(Result::ok);
    let head: Head = serde_json::from_str(&lines.next()?).ok()?;
    if head.plan != plan {
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

    fn run(number: usize) -> Kept {
        Kept {
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
        let open = |plan| Keeper::open(folder.path(), plan).unwrap();
        let (mut keeper, kept) = open("a");
        assert!(kept.is_empty());
        for number in 0..3 {
            keeper.add(&run(number)).unwrap();
        }
        // The last line is cut.
        let path = folder.path().join(NAME);
        let mut text = fs::read(&path).unwrap();
        text.truncate(text.len() - 9);
        fs::write(&path, text).unwrap();
        let (mut keeper, kept) = open("a");
        assert_eq!(kept, [run(0), run(1)]);
        keeper.add(&run(2)).unwrap();
        let (mut keeper, kept) = open("a");
        assert_eq!(kept.len(), 3);
        keeper.finish().unwrap();
        assert!(open("a").1.is_empty());
        open("a").0.add(&run(0)).unwrap();
        assert!(open("b").1.is_empty());
    }
}
