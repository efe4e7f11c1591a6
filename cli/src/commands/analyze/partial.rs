//! Partial results in a file, for the next run and for merging over a group of consumers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baler_analysis::traces::{SavedTraces, TraceStage};
use baler_analysis::{AnalysisError, Held, Parcel, Stage};
use baler_connector_file::replace_file;

use crate::exit::{Code, Failure};

/// The maximum number of chunks that are held until the file is written.
pub(super) const MAX_HELD: usize = 4_096;

/// The file is written when no chunk came for this long.
const QUIET: Duration = Duration::from_secs(1);

/// Feeds the analysis, and releases chunks once the file has their records.
pub(super) struct PartialFile {
    traces: TraceStage,
    path: PathBuf,
    interval: Duration,
    held: Held,
    /// The arrival times of the first and the last chunk that the file does not have yet.
    first: Option<Instant>,
    last: Option<Instant>,
}

impl PartialFile {
    /// Continues with the results in the file, if the file exists.
    ///
    /// # Errors
    ///
    /// The file has no usable results.
    pub(super) fn open(
        traces: TraceStage,
        path: &Path,
        interval: Duration,
    ) -> Result<Self, Failure> {
        match path.try_exists() {
            Ok(false) => {}
            Ok(true) => traces.add_saved(vec![read(path)?]),
            Err(error) => return Err(Failure::unavailable(path.display(), error)),
        }
        Ok(Self {
            traces,
            path: path.to_owned(),
            interval,
            held: Held::default(),
            first: None,
            last: None,
        })
    }

    /// Writes the file, then releases the chunks.
    fn save(&mut self) -> Result<(), AnalysisError> {
        let mut bytes = Vec::new();
        let saved = self.traces.read(|analysis| analysis.save(&mut bytes));
        let written = saved.and_then(|()| replace_file(&self.path, &bytes));
        written.map_err(|error| AnalysisError::output(self.path.display().to_string(), error))?;
        self.held.release_all();
        self.first = None;
        self.last = None;
        Ok(())
    }

    fn is_due(&self) -> bool {
        let waits = self.first.is_some_and(|it| it.elapsed() >= self.interval);
        waits || self.held.len() >= MAX_HELD
    }
}

impl Stage for PartialFile {
    fn name(&self) -> &'static str {
        "partial results"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        self.held.push(parcel.without_records());
        self.traces.accept(parcel)?;
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        match self.is_due() {
            true => self.save(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.save()
    }

    fn idle(&mut self) -> Result<bool, AnalysisError> {
        let is_quiet = self.last.is_some_and(|last| last.elapsed() >= QUIET);
        if is_quiet || self.is_due() {
            self.save()?;
        }
        Ok(!self.held.is_empty())
    }

    fn finish(&mut self) -> Result<(), AnalysisError> {
        // Open traces may continue in the next run, or in another consumer's file.
        self.save()?;
        self.traces.finish()
    }
}

/// Merges the files of a group, then closes the traces that are still open.
///
/// # Errors
///
/// A file cannot be read or has no usable results. The error names the file.
pub(super) fn merge(traces: &mut TraceStage, files: &[PathBuf]) -> Result<(), Failure> {
    let parts: Result<Vec<_>, _> = files.iter().map(|path| read(path)).collect();
    traces.add_saved(parts?);
    Ok(traces.finish()?)
}

fn read(path: &Path) -> Result<SavedTraces, Failure> {
    let file = File::open(path).map_err(|error| Failure::unavailable(path.display(), error))?;
    SavedTraces::read(file).map_err(|error| {
        let message = format!("{}: no results of --partial: {error}", path.display());
        Failure::new(Code::Data, message)
    })
}
