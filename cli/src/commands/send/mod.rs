//! `baler send`: the records of a log, of JSON lines or of a medium to another medium.
//!
//! log, lines, or reader -> source -> [`Forward`] -> controller -> writer; settled when confirmed

mod forward;
mod lines;

use std::num::NonZeroUsize;
use std::time::Instant;

use baler_analysis::kieker_log::{BadLines, LogError, LogReader};
use baler_analysis::{Source, Stop};
use baler_common::container::ChunkDecoder;
use forward::Forward;
use serde_json::{Value, json};

use crate::args::SendArgs;
use crate::decoding;
use crate::endpoint::{self, OpenReader, RecordSource};
use crate::exit::{Code, Failure};
use crate::observe::Observation;
use crate::output::{self, Progress};
use crate::patience::Patience;
use crate::quarantine::PoisonPolicy;
use crate::shipping::Shipper;
use crate::shutdown::Shutdown;

/// Sends until the end of the source, the idle timeout or a signal.
pub(super) fn run(args: &SendArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let to = endpoint::with_topic(&args.to, args.shipping.create_topic.as_deref());
    let writer = endpoint::wrap(endpoint::writer(&to)?, &args.spool);
    let poison = PoisonPolicy::new(&args.quarantine, &args.attempts, shutdown.timeout())?;
    let decoder = decoding::decoder(&args.decoding, NonZeroUsize::MIN)?;
    let source = endpoint::open_source(&args.from)?;
    let progress = Progress::spinner(quiet);
    // What arrives is passed on as it is: no metadata record of this program's own.
    let observation = Observation::start(&args.observe, "send", shutdown, quiet)?;
    let shipper = Shipper::start(
        &args.shipping,
        writer,
        false,
        (shutdown, &observation, quiet),
    )?;
    let (figures, sent) = match source {
        RecordSource::Log { reader, endpoint } => {
            observation.observed().endpoint("source", &endpoint);
            send_log(*reader, endpoint, &shipper, &progress, quiet)
        }
        RecordSource::Lines(lines) => {
            observation.observed().endpoint("source", &lines.endpoint);
            let waits = (&shipper, shutdown);
            lines::send(
                *lines,
                args.idle_timeout,
                poison.quarantine,
                waits,
                &progress,
            )
        }
        RecordSource::Medium(open) => send_medium(
            (args, &poison, decoder),
            open,
            &shipper,
            shutdown,
            (&observation, &progress, quiet),
        ),
    };
    progress.clear();
    let report = shipper.finish();
    let shown = observation.finish();
    let mut document = json!({ "source": figures.document });
    output::extend(&mut document, report.document());
    output::document(args.format, &document)?;
    shown?;
    // A medium that was given up explains why the source stopped, not the other way round.
    let code = report.conclude()?;
    sent?;
    Ok(match code {
        Code::Done if figures.is_incomplete => Code::Data,
        Code::Done if figures.stopped_early => Code::Incomplete,
        code => code,
    })
}

/// What came from the source.
struct SourceFigures {
    /// The names are part of the program's interface.
    document: Value,
    /// Whether lines were skipped, or chunks put aside or missing.
    is_incomplete: bool,
    /// Whether a signal or the other medium ended it before a log's end.
    stopped_early: bool,
}

/// Emits the records of a log, in order.
fn send_log(
    mut log: LogReader,
    endpoint: String,
    shipper: &Shipper,
    progress: &Progress,
    quiet: bool,
) -> (SourceFigures, Result<(), Failure>) {
    if !quiet {
        for unread in log.unread_files() {
            output::say(format_args!("not read: {unread}"));
        }
    }
    let mut stopped_early = false;
    let mut result = Ok(());
    loop {
        if shipper.should_stop() {
            stopped_early = true;
            break;
        }
        let record = match log.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) => {
                result = Err(log_failure(&error));
                break;
            }
        };
        if !shipper.controller().emit_as_is(record.as_ref()) && shipper.should_stop() {
            stopped_early = true;
            break;
        }
        progress.show(log.records(), || {
            format!("{} records from {endpoint}", output::number(log.records()))
        });
    }
    let bad_lines = log.bad_lines();
    if !quiet {
        show_bad_lines(bad_lines);
    }
    let figures = SourceFigures {
        document: json!({
            "from": endpoint,
            "records": log.records(),
            "bad_lines": bad_lines.reasons(),
            "stopped_early": stopped_early,
        }),
        is_incomplete: bad_lines.total() > 0,
        stopped_early,
    };
    (figures, result)
}

fn log_failure(error: &LogError) -> Failure {
    let code = match error {
        LogError::Line(_) => Code::Data,
        _ => Code::Unavailable,
    };
    Failure::new(code, error.to_string())
}

fn show_bad_lines(bad_lines: &BadLines) {
    let shown = bad_lines.first();
    for line in shown {
        output::say(format_args!("skipped: {line}"));
    }
    let rest = bad_lines
        .total()
        .saturating_sub(u64::try_from(shown.len()).unwrap_or(u64::MAX));
    if rest > 0 {
        output::say(format_args!("skipped: {} more lines", output::number(rest)));
    }
}

/// Decodes the chunks of a medium and emits their records; settles them when they are confirmed
/// at the other end.
fn send_medium(
    (args, poison, decoder): (&SendArgs, &PoisonPolicy, ChunkDecoder),
    open: OpenReader,
    shipper: &Shipper,
    shutdown: &Shutdown,
    (observation, progress, quiet): (&Observation, &Progress, bool),
) -> (SourceFigures, Result<(), Failure>) {
    if let (Some(address), false) = (open.listens_on, quiet) {
        output::say(format_args!("listening on {address}"));
    }
    observation.observed().endpoint("source", &open.endpoint);
    let mut source = poison.apply(Source::new(open.reader).with_decoder(decoder));
    observation.receives(&mut source);
    let mut stop = Stop::default();
    stop.idle_timeout = args.idle_timeout;
    let give_up = args.idle_timeout.map(|_| args.shipping.give_up);
    let mut patience = Patience::new(&open.endpoint, give_up, quiet);
    let mut given_up = None;
    let mut forward = Forward::new(shipper);
    let ran = source.run(&mut forward, stop, |report| {
        given_up = patience.look(&report.waiting).err();
        progress.show(report.records, || {
            format!(
                "{} records from {}",
                output::number(report.records),
                open.endpoint
            )
        });
        !shipper.should_stop() && given_up.is_none()
    });
    // After an error the stage was not finished: what it holds goes back to the source.
    drop(forward);
    let deadline = shutdown.deadline().max(Instant::now());
    let before_close = source.report();
    let (report, closed) = match source.close(deadline) {
        Ok(report) => (report, Ok(())),
        Err(error) => (before_close, Err(error)),
    };
    let missing = report.missing(open.readership);
    let figures = SourceFigures {
        document: json!({
            "from": open.endpoint,
            "records": report.records,
            "chunks": report.chunks,
            "acknowledged": report.acknowledged,
            "given_back": report.given_back,
            "quarantined": report.quarantined,
            "redelivered": report.redelivered,
            "duplicates_within_reader": report.duplicates,
            "missing": missing,
            "stopped_early": false,
        }),
        is_incomplete: report.quarantined > 0 || missing > 0,
        stopped_early: false,
    };
    let result = ran.and(closed).map_err(Failure::from);
    (figures, given_up.map_or(result, Err))
}
