//! `baler tap`: records as they pass, without disturbing those who consume them.
//!
//! medium or running command -> source -> by type -> where -> rate -> first N
//!     -> thread for the output -> standard output

pub(super) mod condition;
mod process;
mod show;

use std::num::NonZeroUsize;

use baler_analysis::filters::{ByType, First, TypePattern};
use baler_analysis::sinks::{JsonLines, TextTable};
use baler_analysis::{AnalysisError, Pipe, Source, Stage, Stop};
use baler_common::transport::{Browse, Readership};
use condition::{Condition, Where};
use process::ProcessTap;
use show::{Limit, Prompt};

use crate::args::{DocumentFormat, TapArgs};
use crate::decoding;
use crate::endpoint::{self, OpenReader};
use crate::exit::{Code, Failure};
use crate::output;
use crate::patience::Patience;
use crate::shutdown::Shutdown;

/// How many chunks wait for an output that takes nothing. Those behind them wait in the reader.
const PIPE_CHUNKS: usize = 16;

/// Shows records until the end, the count, the idle timeout or a signal.
pub(super) fn run(args: &TapArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    if args.identity && args.format != DocumentFormat::Json {
        return Err(Failure::configuration(
            "--identity adds to JSON records: use it with --format json",
        ));
    }
    let condition = args.condition.as_deref().map(Condition::new).transpose()?;
    let decoder = decoding::decoder(&args.decoding, NonZeroUsize::MIN)?;
    let mut skipped = None;
    let OpenReader {
        reader, endpoint, ..
    } = if is_process(&args.from) {
        let (reader, endpoint) =
            ProcessTap::open(&args.from, args.from_start, args.token_file.as_deref())?;
        skipped = Some(reader.skipped());
        OpenReader {
            reader: Box::new(reader),
            listens_on: None,
            endpoint,
            readership: Readership::OneProcess,
            only_looks: true,
        }
    } else {
        let range = if args.from_start {
            Browse::FromOldest
        } else {
            Browse::FromNow
        };
        endpoint::open_tap(&args.from, range)?
    };
    let mut source = Source::new(reader).with_decoder(decoder);
    let (mut stage, counts) = stages(args, condition, shutdown)?;
    // A look holds nothing that others wait for.
    shutdown.drains(true, || 0);
    let mut stop = Stop::default();
    stop.idle_timeout = args.idle_timeout;
    let give_up = args.give_up.limit(args.idle_timeout);
    let mut patience = Patience::new(&endpoint, give_up, quiet);
    let mut given_up = None;
    let ran = source.run(&mut *stage, stop, |report| {
        given_up = patience.look(&report.waiting).err();
        !shutdown.is_requested() && !counts.taken.is_enough() && given_up.is_none()
    });
    let seen = source.report();
    let closed = source.close(shutdown.deadline());
    let result = ran.and_then(|()| closed.map(drop)).map_err(Failure::from);
    let result = given_up.map_or(result, Err);
    // Nobody reads any more: a quiet end.
    let silent = matches!(&result, Err(failure) if failure.code == Code::Done);
    if !quiet && !silent {
        tell(&seen, &counts, skipped.as_ref(), &endpoint);
    }
    result?;
    Ok(Code::Done)
}

/// Whether what is to be looked at is a running command.
fn is_process(text: &str) -> bool {
    text.starts_with("http:") || !endpoint::is_uri(text) && text.contains(':')
}

/// Handles to what the stages count.
struct Counts {
    condition: Option<condition::Failures>,
    limited: Option<show::Limited>,
    taken: baler_analysis::filters::Taken,
}

/// The stages from the filters to standard output.
///
/// # Errors
///
/// The operating system refuses a thread.
fn stages(
    args: &TapArgs,
    condition: Option<Condition>,
    shutdown: &Shutdown,
) -> Result<(Box<dyn Stage>, Counts), AnalysisError> {
    let (stdout, what) = (output::RecordOutput::new(), "standard output");
    let sink: Box<dyn Stage> = match args.format {
        DocumentFormat::Json if args.identity => {
            Box::new(JsonLines::new(stdout, what).with_identity())
        }
        DocumentFormat::Json => Box::new(JsonLines::new(stdout, what)),
        DocumentFormat::Table => Box::new(TextTable::new(stdout, what, output::width())),
    };
    let pipe = Pipe::spawn(PIPE_CHUNKS, Prompt::new(sink))
        .map_err(|error| AnalysisError::output("a thread for the output", error))?;
    let ending = shutdown.clone();
    let pipe = pipe.until(move || ending.output_deadline());
    let (first, taken) = First::new(args.count.unwrap_or(u64::MAX), pipe);
    let mut counts = Counts {
        condition: None,
        limited: None,
        taken,
    };
    let mut stage: Box<dyn Stage> = Box::new(first);
    if let Some(rate) = args.rate {
        let limit = Limit::new(rate, stage);
        counts.limited = Some(limit.limited());
        stage = Box::new(limit);
    }
    if let Some(condition) = condition {
        let filter = Where::new(condition, stage);
        counts.condition = Some(filter.failures());
        stage = Box::new(filter);
    }
    if !args.types.is_empty() {
        let patterns = args
            .types
            .iter()
            .map(|pattern| TypePattern::new(pattern.as_str()));
        stage = Box::new(ByType::new(patterns, stage));
    }
    Ok((stage, counts))
}

/// Tells on standard error what was seen, and what was not shown and why.
fn tell(
    seen: &baler_analysis::SourceReport,
    counts: &Counts,
    skipped: Option<&process::Skipped>,
    endpoint: &str,
) {
    output::say(format_args!(
        "{} in {} passed at {endpoint}",
        output::counted(seen.records, "record"),
        output::counted(seen.chunks, "chunk"),
    ));
    if let Some(chunks) = skipped.map(process::Skipped::chunks).filter(|it| *it > 0) {
        output::say(format_args!(
            "{} chunks were skipped because this tap was too slow",
            output::number(chunks)
        ));
    }
    if let Some(records) = counts.limited.as_ref().map(show::Limited::records)
        && records > 0
    {
        output::say(format_args!(
            "{} records were not shown because of --rate",
            output::number(records)
        ));
    }
    if let Some(failures) = &counts.condition {
        failures.tell();
    }
    if seen.quarantined > 0 {
        output::say(format_args!(
            "{} chunks do not decode",
            output::number(seen.quarantined)
        ));
    }
}
