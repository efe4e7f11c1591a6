//! `baler send`: the records of JSON lines or of a medium to another medium.
//!
//! lines, or the records that [`Forwarding`] takes from a medium -> controller -> writer

mod forward;
mod lines;

use std::num::NonZeroUsize;

use baler_analysis::Source;
use baler_common::container::ChunkDecoder;
use lines::LinesSender;
use serde_json::{Value, json};

pub(super) use forward::{Forwarding, figures};

use crate::args::SendArgs;
use crate::condition::Condition;
use crate::decoding;
use crate::endpoint::{self, OpenReader, RecordSource};
use crate::exit::{Code, Failure};
use crate::fields::{Fields, Narrower, memory_parts};
use crate::observe::Observation;
use crate::output::{self, Progress};
use crate::quarantine::PoisonPolicy;
use crate::shipping::Shipper;
use crate::shutdown::{Shutdown, is_partial};

/// Sends until the end of the source, the idle timeout or a signal.
pub(super) fn run(args: &SendArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let (condition, fields) = (args.condition.expression()?, args.fields.chosen()?);
    let writer = endpoint::spooled_writer(&args.to, &args.spool)?;
    let poison = PoisonPolicy::new(&args.quarantine, &args.attempts, shutdown.timeout())?;
    let decoder = decoding::decoder(
        &args.decoding,
        memory_parts(fields.as_ref(), NonZeroUsize::MIN),
    )?;
    let source = endpoint::open_source(&args.from)?;
    let progress = Progress::spinner(quiet);
    // Records are passed on as they are: this program adds no metadata record of its own.
    let observation = Observation::start(&args.observe, "send", shutdown, quiet)?;
    let context = (shutdown, &observation, quiet);
    let shipper = Shipper::start(&args.shipping, writer, false, context)?;
    let counting = condition.clone();
    if let Some(condition) = condition.clone() {
        observation.observed.add(Box::new(condition));
    }
    let (mut figures, sent) = match source {
        RecordSource::Lines(lines, endpoint) => {
            observation.observed.endpoint("source", &endpoint);
            let sender = LinesSender {
                lines,
                endpoint,
                quarantine: poison.quarantine,
                idle_timeout: args.idle_timeout,
                condition,
                narrower: fields.clone().map(Narrower::new),
                shipper: &shipper,
                shutdown,
            };
            sender.send(&progress)
        }
        RecordSource::Medium(open) => {
            output::listening(open.listens_on, None, quiet)?;
            let filters = (condition, fields.as_ref());
            let source = (args, &poison, decoder);
            send_medium(source, open, filters, &shipper, context, &progress)
        }
    };
    progress.clear();
    let filtered = counting.as_ref().map_or(0, Condition::filtered);
    output::insert(&mut figures.document, "filtered", filtered);
    if let Some(counting) = &counting {
        counting.insert(&mut figures.document);
        if !quiet {
            counting.report_undecided();
        }
    }
    let document = json!({ "source": figures.document });
    // A medium that was given up explains why the source stopped, not the other way round.
    let (_, code) = shipper.conclude(observation, args.format, document)?;
    sent?;
    fields.as_ref().map_or(Ok(()), Fields::check)?;
    Ok(match code {
        Code::Done if figures.is_incomplete => Code::Data,
        Code::Done if figures.stopped_early => Code::Incomplete,
        Code::Done => counting.as_ref().map_or(Code::Done, Condition::code),
        code => code,
    })
}

/// The figures of the source.
struct SourceFigures {
    /// The names are part of the program's interface.
    document: Value,
    /// Whether lines were skipped, or chunks put aside or missing.
    is_incomplete: bool,
    /// Whether a signal or the target ended the command before the end of the source.
    stopped_early: bool,
}

/// Sends the records of a medium.
fn send_medium(
    (args, poison, decoder): (&SendArgs, &PoisonPolicy, ChunkDecoder),
    open: OpenReader,
    (condition, fields): (Option<Condition>, Option<&Fields>),
    shipper: &Shipper,
    context: (&Shutdown, &Observation, bool),
    progress: &Progress,
) -> (SourceFigures, Result<(), Failure>) {
    let forwarding = Forwarding {
        source: poison.apply(Source::new(open.reader).with_decoder(decoder)),
        endpoint: &open.endpoint,
        condition,
        fields,
        shipper,
        idle_timeout: args.idle_timeout,
        give_up: args.idle_timeout.map(|_| args.shipping.give_up),
    };
    let (report, sent) = forwarding.run(context, progress);
    let missing = report.missing(open.readership);
    let stopped_early = is_partial(report.reached_end, context.0);
    let mut document = figures(&open.endpoint, &report);
    output::insert(&mut document, "missing", missing);
    output::insert(&mut document, "stopped_early", stopped_early);
    let figures = SourceFigures {
        document,
        is_incomplete: report.quarantined > 0 || missing > 0 || report.reader.removals > 0,
        stopped_early,
    };
    (figures, sent)
}
