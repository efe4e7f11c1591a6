//! The stages of each worker. Workers have their own filters; they share the output and the
//! figures.
//!
//! filters on the worker's thread -> pipe -> sink on a thread of its own, which may have to wait

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use baler_analysis::filters::{Counts, SharedStage, Taken, Tee, Times};
use baler_analysis::sinks::{
    CsvFolder, Existing, Formulas, JsonLines, OutputFile, SharedOutput, TextTable,
};
use baler_analysis::{AnalysisError, Pipe, Progress, Stage};

use super::settings::Settings;
use super::summary::Figures;
use crate::args::RecordFormat;
use crate::exit::Failure;
use crate::output;
use crate::shutdown::Shutdown;

/// The maximum number of chunks of a worker that wait for its sink.
const PIPE_CHUNKS: usize = 16;

/// Creates the stages of one worker after the other.
pub(super) struct Stages<'a> {
    settings: &'a Settings,
    shutdown: Shutdown,
    sink: Sink,
    /// The counts of all workers together.
    pub(super) figures: Figures,
    /// The progress of the output, which shows whether the output is stalled.
    pub(super) progress: Progress,
    /// The number of workers that still need stages.
    left: usize,
}

/// The output that the sinks of all workers share.
#[derive(Debug)]
enum Sink {
    /// A sink that owns its files, so all workers share it. `None` once the last worker has taken
    /// it.
    Files(Option<SharedStage<Box<dyn Stage>>>),
    Lines(Lines),
    Nothing,
}

/// An output of lines.
#[derive(Debug)]
struct Lines {
    output: SharedOutput,
    what: String,
    /// Whether the header of a table is written.
    has_header: Arc<AtomicBool>,
}

impl<'a> Stages<'a> {
    /// Opens the output.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn new(
        settings: &'a Settings,
        quiet: bool,
        shutdown: &Shutdown,
    ) -> Result<Self, Failure> {
        let (written, progress) = (Counts::default(), Progress::default());
        let say = move |line: &str| {
            if !quiet {
                output::say(line);
            }
        };
        let existing = match settings.args.overwrite {
            true => Existing::Replace,
            false => Existing::Append,
        };
        let files = |files: Box<dyn Stage>| Sink::Files(Some(SharedStage::new(files)));
        let sink = match (settings.args.format, &settings.args.output) {
            (RecordFormat::Csv, Some(folder)) => {
                let formulas = match settings.args.csv_escape_formulas {
                    true => Formulas::Escape,
                    false => Formulas::Keep,
                };
                let folder = CsvFolder::new(folder)
                    .with_existing(existing)
                    .with_formulas(formulas)
                    .with_notice(say);
                files(Box::new(folder.counting(written.clone())))
            }
            #[cfg(feature = "parquet")]
            (RecordFormat::Parquet, Some(folder)) => {
                let parquet = settings.args.parquet.settings(settings.args.identity);
                let folder = baler_analysis::arrow::ParquetFolder::new(folder, parquet);
                files(Box::new(folder.counting(written.clone())))
            }
            (RecordFormat::None | RecordFormat::Csv | RecordFormat::Parquet, _) => Sink::Nothing,
            (_, Some(path)) => Sink::Lines(Lines::to_file(path, existing, &progress, say)?),
            (_, None) => Sink::Lines(Lines {
                output: SharedOutput::watched(output::RecordOutput, progress.clone()),
                what: "standard output".to_owned(),
                has_header: Arc::default(),
            }),
        };
        Ok(Self {
            settings,
            shutdown: shutdown.clone(),
            sink,
            figures: Figures {
                written,
                times: settings.args.operations.then(Times::default),
                taken: Taken::of(settings.args.count),
            },
            progress,
            left: settings.args.workers.get(),
        })
    }

    /// Returns the stages of the next worker.
    ///
    /// # Errors
    ///
    /// The operating system refuses a thread.
    pub(super) fn next(&mut self) -> Result<Box<dyn Stage>, AnalysisError> {
        self.left -= 1;
        let mut tee = match self
            .sink
            .stage(self.settings, &self.figures.written, self.left == 0)
        {
            Some(sink) => match &self.settings.fields {
                Some(fields) => Tee::new().branch(fields.narrow(self.piped(sink)?)),
                None => Tee::new().branch(self.piped(sink)?),
            },
            None => Tee::new().branch(self.figures.written.stage()),
        };
        if let Some(times) = &self.figures.times {
            tee = tee.branch(times.stage());
        }
        let stage = self
            .settings
            .filters
            .before(Box::new(self.figures.taken.stage(tee)));
        Ok(match &self.settings.fields {
            Some(fields) => Box::new(fields.note(stage)),
            None => stage,
        })
    }

    /// Runs the sink on its own thread. No worker waits for it beyond the output deadline.
    fn piped(&self, sink: Box<dyn Stage>) -> Result<Pipe, AnalysisError> {
        let pipe = Pipe::watched(PIPE_CHUNKS, sink, self.progress.clone())
            .map_err(|error| AnalysisError::output("a thread for the output", error))?;
        let shutdown = self.shutdown.clone();
        Ok(pipe.until(move || shutdown.output_deadline()))
    }
}

impl Sink {
    /// Returns the sink of one worker, or `None` if no records are written.
    fn stage(
        &mut self,
        settings: &Settings,
        written: &Counts,
        last: bool,
    ) -> Option<Box<dyn Stage>> {
        Some(match self {
            // The last worker takes the sink itself.
            Self::Files(files) if last => Box::new(files.take()?),
            Self::Files(files) => Box::new(files.clone()?),
            Self::Lines(lines) if settings.args.format == RecordFormat::Table => {
                // A line of a file has room for a whole record.
                let to_file = settings.args.output.is_some();
                let width = output::width().filter(|_| !to_file);
                Box::new(
                    TextTable::new(lines.output.clone(), lines.what.as_str(), width)
                        .sharing_header(Arc::clone(&lines.has_header))
                        .counting(written.clone()),
                )
            }
            Self::Lines(lines) => {
                let sink = JsonLines::new(lines.output.clone(), lines.what.as_str())
                    .counting(written.clone());
                Box::new(match settings.args.format {
                    RecordFormat::Lines => sink.as_lines(),
                    _ if settings.args.identity => sink.with_identity(),
                    _ => sink,
                })
            }
            Self::Nothing => return None,
        })
    }
}

impl Lines {
    fn to_file(
        path: &Path,
        existing: Existing,
        progress: &Progress,
        say: impl Fn(&str),
    ) -> Result<Self, Failure> {
        let (file, torn) = OutputFile::lines(path, existing)
            .map_err(|error| Failure::output(path.display(), &error))?;
        if let Some(torn) = torn {
            say(&torn.to_string());
        }
        Ok(Self {
            has_header: Arc::new(AtomicBool::new(!file.is_empty())),
            output: SharedOutput::watched(file, progress.clone()),
            what: path.display().to_string(),
        })
    }
}
