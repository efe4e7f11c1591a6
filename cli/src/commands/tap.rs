//! `baler tap`: shows records as they pass, without disturbing their consumers.
//!
//! medium or running command -> source -> by type -> where -> rate -> first N
//!     -> thread for the output -> standard output

mod process;
mod show;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baler_analysis::filters::Taken;
use baler_analysis::sinks::{JsonLines, TextTable};
use baler_analysis::{AnalysisError, Pipe, Source, SourceReport, Stage};
use baler_common::transport::{Browse, ChunkReader};
use process::ProcessTap;
use show::{Limit, Prompt};

use crate::args::{DocumentFormat, TapArgs};
use crate::decoding;
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::filters::{self, Filters};
use crate::output;
use crate::patience::Patience;
use crate::shutdown::Shutdown;

/// The maximum number of chunks that wait for a stalled output. Further chunks wait in the reader.
const PIPE_CHUNKS: usize = 16;

/// Shows records until the end, the count, the idle timeout or a signal.
pub(super) fn run(args: &TapArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    if args.identity && args.format != DocumentFormat::Json {
        return Err(Failure::configuration(
            "--identity adds to JSON records: use it with --format json",
        ));
    }
    let filters = Filters::new(&args.types, None, None, args.condition.expression()?)?;
    let decoder = decoding::decoder(&args.decoding, NonZeroUsize::MIN)?;
    let mut counts = Counts::new(args);
    let (reader, endpoint) = if is_process(&args.from) {
        let token_file = args.token_file.as_deref();
        let tap = ProcessTap::open(&args.from, args.from_start, token_file)?;
        counts.skipped = Arc::clone(&tap.skipped);
        let endpoint = tap.endpoint.to_string();
        (Box::new(tap) as Box<dyn ChunkReader>, endpoint)
    } else {
        let range = if args.from_start {
            Browse::FromOldest
        } else {
            Browse::FromNow
        };
        let from = endpoint::with_schemas(&args.from, &args.decoding.schemas);
        let open = endpoint::open_tap(&from, range)?;
        (open.reader, open.endpoint)
    };
    let source = Source::new(reader).with_decoder(decoder);
    let stage = filters.before(stages(args, &counts, shutdown)?);
    let give_up = args.give_up.limit(args.idle_timeout);
    let mut patience = Patience::new(&endpoint, give_up, quiet);
    let (seen, result) = patience.run_source(source, stage, args.idle_timeout, shutdown, |_| {
        !shutdown.is_requested() && !counts.taken.is_enough()
    });
    // Nobody reads the output any more: end quietly.
    let silent = matches!(&result, Err(failure) if failure.code == Code::Done);
    if !quiet && !silent {
        counts.tell(&seen, &endpoint);
        filters::report_undecided(filters.condition.as_ref());
    }
    result?;
    Ok(filters::code(filters.condition.as_ref()))
}

/// Whether the text names a running command rather than a medium.
fn is_process(text: &str) -> bool {
    text.starts_with("http:") || !endpoint::is_uri(text) && text.contains(':')
}

/// The counts of the stages.
struct Counts {
    /// Records beyond `--rate`.
    limited: Arc<AtomicU64>,
    /// Chunks that a running command did not show.
    skipped: Arc<AtomicU64>,
    taken: Taken,
}

impl Counts {
    fn new(args: &TapArgs) -> Self {
        Self {
            limited: Arc::default(),
            skipped: Arc::default(),
            taken: Taken::of(args.count),
        }
    }

    /// Reports on standard error what was seen, and what was not shown and why.
    fn tell(&self, seen: &SourceReport, endpoint: &str) {
        output::say(format_args!(
            "{} in {} passed at {endpoint}",
            output::counted(seen.records, "record"),
            output::counted(seen.chunks, "chunk"),
        ));
        for (count, what) in [
            (
                self.skipped.load(Ordering::Relaxed),
                "chunks were skipped because this tap was too slow",
            ),
            (
                self.limited.load(Ordering::Relaxed),
                "records were not shown because of --rate",
            ),
            (seen.quarantined, "chunks do not decode"),
        ] {
            if count > 0 {
                output::say(format_args!("{} {what}", output::number(count)));
            }
        }
    }
}

/// Returns the stages from the rate limit to standard output.
///
/// # Errors
///
/// The operating system refuses a thread.
fn stages(
    args: &TapArgs,
    counts: &Counts,
    shutdown: &Shutdown,
) -> Result<Box<dyn Stage>, AnalysisError> {
    let (stdout, what) = (output::RecordOutput, "standard output");
    let sink: Box<dyn Stage> = match args.format {
        DocumentFormat::Json if args.identity => {
            Box::new(JsonLines::new(stdout, what).with_identity())
        }
        DocumentFormat::Json => Box::new(JsonLines::new(stdout, what)),
        DocumentFormat::Table => Box::new(TextTable::new(stdout, what, output::width())),
    };
    let pipe = Pipe::spawn(PIPE_CHUNKS, Prompt(sink))
        .map_err(|error| AnalysisError::output("a thread for the output", error))?;
    let ending = shutdown.clone();
    let pipe = pipe.until(move || ending.output_deadline());
    let taken = counts.taken.stage(pipe);
    Ok(match args.rate {
        Some(rate) => Box::new(Limit::new(rate, &counts.limited, taken)),
        None => Box::new(taken),
    })
}
