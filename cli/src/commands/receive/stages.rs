//! The stages of each worker: their own filters and lines, one output and figures for all.

use std::io::{BufWriter, Write};

use baler_analysis::Stage;
use baler_analysis::filters::{ByTime, ByType, Counts, Shared, Taken, Tee, Times};
use baler_analysis::sinks::{CsvFolder, JsonLines, Null, SharedOutput, TextTable};

use super::settings::{Settings, Target};
use super::summary::Figures;
use crate::args::RecordFormat;
use crate::exit::Failure;
use crate::output;

/// Makes the stages of one worker after the other.
#[derive(Debug)]
pub(super) struct Stages<'a> {
    settings: &'a Settings,
    sink: Sink,
    counts: Counts,
    times: Option<Times>,
    taken: Taken,
    /// How many workers are still to come.
    left: usize,
}

/// What the sinks of all workers share.
#[derive(Debug)]
enum Sink {
    /// It owns its files, so there is one. None when the last worker has it.
    Csv(Option<Shared<CsvFolder>>),
    #[cfg(feature = "parquet")]
    Parquet(Option<Shared<baler_arrow::ParquetFolder>>),
    Lines(SharedOutput, String),
    Nothing,
}

impl<'a> Stages<'a> {
    /// Opens the output.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn new(settings: &'a Settings) -> Result<Self, Failure> {
        let sink = match (&settings.target, settings.format) {
            (Target::Folder(folder), _) => Sink::Csv(Some(Shared::new(CsvFolder::new(folder)))),
            #[cfg(feature = "parquet")]
            (Target::Parquet(folder, parquet), _) => {
                let files = baler_arrow::ParquetFolder::new(folder, parquet.clone());
                Sink::Parquet(Some(Shared::new(files)))
            }
            (_, RecordFormat::None | RecordFormat::Csv) => Sink::Nothing,
            (Target::File(path), _) => {
                let file = std::fs::File::create(path)
                    .map_err(|error| Failure::output(path.display(), &error))?;
                Sink::lines(BufWriter::new(file), path.display().to_string())
            }
            (Target::Stdout, _) => {
                Sink::lines(output::RecordOutput::new(), "standard output".to_owned())
            }
        };
        Ok(Self {
            settings,
            sink,
            counts: Counts::default(),
            times: settings.operations.then(Times::default),
            taken: Taken::of(settings.count.unwrap_or(u64::MAX)),
            left: settings.workers.get(),
        })
    }

    /// Handles to what all workers count together.
    pub(super) fn figures(&self) -> Figures {
        Figures {
            counts: self.counts.clone(),
            times: self.times.clone(),
            taken: self.taken.clone(),
        }
    }

    /// The stages of the next worker.
    pub(super) fn next(&mut self) -> Box<dyn Stage> {
        self.left = self.left.saturating_sub(1);
        let mut tee = Tee::new()
            .branch(self.sink.stage(self.settings, self.left == 0))
            .branch(self.counts.stage());
        if let Some(times) = &self.times {
            tee = tee.branch(times.stage());
        }
        let mut stage: Box<dyn Stage> = Box::new(self.taken.stage(tee));
        if let Some(span) = self.settings.span.clone() {
            stage = Box::new(ByTime::new(span, stage));
        }
        if !self.settings.types.is_empty() {
            stage = Box::new(ByType::new(self.settings.types.iter().cloned(), stage));
        }
        stage
    }
}

impl Sink {
    fn lines(output: impl Write + Send + 'static, what: String) -> Self {
        Self::Lines(SharedOutput::new(output), what)
    }

    /// One worker's end of it.
    fn stage(&mut self, settings: &Settings, last: bool) -> Box<dyn Stage> {
        match self {
            Self::Csv(shared) => share(shared, last),
            #[cfg(feature = "parquet")]
            Self::Parquet(shared) => share(shared, last),
            Self::Lines(output, what) if settings.format == RecordFormat::Table => {
                // A file has room for all of a record.
                let to_file = matches!(settings.target, Target::File(_));
                let width = output::width().filter(|_| !to_file);
                Box::new(TextTable::new(output.clone(), what.as_str(), width))
            }
            Self::Lines(output, what) => {
                let lines = JsonLines::new(output.clone(), what.as_str());
                if settings.identity {
                    return Box::new(lines.with_identity());
                }
                Box::new(lines)
            }
            Self::Nothing => Box::new(Null),
        }
    }
}

/// One worker's share of a sink that owns its files; the last one takes it.
fn share<S: Stage + 'static>(shared: &mut Option<Shared<S>>, last: bool) -> Box<dyn Stage> {
    let mine = if last { shared.take() } else { shared.clone() };
    mine.map_or_else(|| Box::new(Null) as Box<dyn Stage>, |it| Box::new(it))
}
