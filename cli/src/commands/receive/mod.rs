//! `baler receive`: chunks of a medium to records on standard output or in files.
//!
//! reader -> source -> by type -> by time -> first N -> sink, counts, response times

mod settings;
mod summary;

use std::io::{self, BufWriter, Write};

use baler_analysis::filters::{ByTime, ByType, Count, First, ResponseTimes, Tee};
use baler_analysis::quarantine::Folder;
use baler_analysis::sinks::{CsvFolder, JsonLines, Null, TextTable};
use baler_analysis::{Source, SourceReport, Stage, Stop};
use settings::{Settings, Target};
use summary::{EndedBy, Figures, Summary};

use crate::args::{ReceiveArgs, RecordFormat};
use crate::endpoint::{self, OpenReader};
use crate::exit::{Code, Failure};
use crate::output::{self, Progress};
use crate::shutdown::Shutdown;

/// The widest a line of `--format table` may be, in characters.
const WIDTH: usize = 100;

/// Receives until the end, the count, the idle timeout or a signal.
pub(super) fn run(args: ReceiveArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let settings = Settings::new(args)?;
    let sink = sink(&settings)?;
    let OpenReader {
        reader,
        listens_on,
        endpoint,
    } = endpoint::open_reader(&settings.from, settings.follow)?;
    let ends = reader.capability().ends;
    if let Some(address) = listens_on {
        if !quiet {
            output::say(format_args!("listening on {address}"));
        }
        if let Some(path) = &settings.port_file {
            output::whole_file(path, &format!("{address}\n"))?;
        }
    }
    let mut source = Source::new(reader);
    if let Some(folder) = &settings.quarantine {
        source = source.with_quarantine(Folder::new(folder));
    }
    let (mut pipeline, figures) = pipeline(&settings, sink);
    let mut stop = Stop::default();
    stop.idle_timeout = settings.idle_timeout;
    let progress = Progress::spinner(quiet);
    let ran = source.run(&mut pipeline, stop, |report| {
        progress.show(report.records, || {
            format!(
                "{} records in {} chunks from {endpoint}",
                output::number(report.records),
                output::number(report.chunks),
            )
        });
        !shutdown.is_requested() && !figures.taken.is_enough()
    });
    progress.clear();
    let ended_by = match &ran {
        Err(_) => EndedBy::Error,
        Ok(()) if figures.taken.is_enough() => EndedBy::Count,
        Ok(()) if shutdown.is_requested() => EndedBy::Signal,
        Ok(()) if ends => EndedBy::End,
        Ok(()) => EndedBy::IdleTimeout,
    };
    let before_close = source.report();
    let (report, closed) = match source.close(shutdown.deadline()) {
        Ok(report) => (report, Ok(())),
        Err(error) => (before_close, Err(error)),
    };
    let summary = Summary::new(&report, &figures, ended_by, listens_on);
    finish(
        &settings,
        &summary,
        &report,
        ran.and(closed).map_err(Failure::from),
        quiet,
    )
}

/// Tells the summary, whatever happened, and decides on the exit code.
fn finish(
    settings: &Settings,
    summary: &Summary,
    report: &SourceReport,
    result: Result<(), Failure>,
    quiet: bool,
) -> Result<Code, Failure> {
    if let Some(path) = &settings.summary {
        output::json_file(path, summary)?;
    }
    // Nobody reads any more: a quiet end.
    let silent = matches!(&result, Err(failure) if failure.code == Code::Done);
    if !quiet && !silent {
        output::say(summary.text().trim_end());
    }
    result?;
    if report.quarantined > 0 {
        return Ok(Code::Data);
    }
    Ok(Code::Done)
}

/// Where records are written.
fn sink(settings: &Settings) -> Result<Box<dyn Stage>, Failure> {
    let (output, what): (Box<dyn Write + Send>, String) = match &settings.target {
        Target::File(path) => {
            let file = std::fs::File::create(path)
                .map_err(|error| Failure::output(path.display(), &error))?;
            (Box::new(BufWriter::new(file)), path.display().to_string())
        }
        Target::Folder(folder) => return Ok(Box::new(CsvFolder::new(folder))),
        Target::Stdout => (Box::new(io::stdout()), "standard output".to_owned()),
    };
    Ok(match settings.format {
        RecordFormat::Json if settings.identity => {
            Box::new(JsonLines::new(output, what).with_identity())
        }
        RecordFormat::Json => Box::new(JsonLines::new(output, what)),
        RecordFormat::Table => Box::new(TextTable::new(output, what, WIDTH)),
        RecordFormat::Csv | RecordFormat::None => Box::new(Null),
    })
}

/// The stages in front of the sink, and the handles to what they count.
fn pipeline(settings: &Settings, sink: Box<dyn Stage>) -> (Box<dyn Stage>, Figures) {
    let (count, counts) = Count::new();
    let mut tee = Tee::new().branch(sink).branch(count);
    let mut times = None;
    if settings.operations {
        let (stage, handle) = ResponseTimes::new();
        tee = tee.branch(stage);
        times = Some(handle);
    }
    let (first, taken) = First::new(settings.count.unwrap_or(u64::MAX), tee);
    let mut stage: Box<dyn Stage> = Box::new(first);
    if let Some(span) = settings.span.clone() {
        stage = Box::new(ByTime::new(span, stage));
    }
    if !settings.types.is_empty() {
        stage = Box::new(ByType::new(settings.types.iter().cloned(), stage));
    }
    let figures = Figures {
        counts,
        times,
        taken,
    };
    (stage, figures)
}
