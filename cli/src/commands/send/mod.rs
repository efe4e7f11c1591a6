//! `baler send`: the records of JSON lines or of a medium to another medium.
//!
//! lines, or reader -> source -> where -> fields -> [`Forward`] -> controller -> writer; settled
//! when confirmed

mod lines;

use std::num::NonZeroUsize;

use baler_analysis::{AnalysisError, Held, Parcel, Source, Stage};
use baler_common::container::ChunkDecoder;
use lines::LinesSender;
use serde_json::{Value, json};

use crate::args::SendArgs;
use crate::condition::{Condition, Failures, Where};
use crate::decoding;
use crate::endpoint::{self, OpenReader, RecordSource};
use crate::exit::{Code, Failure};
use crate::fields::{Fields, Narrower, memory_parts};
use crate::observe::Observation;
use crate::output::{self, Progress};
use crate::patience::Patience;
use crate::quarantine::PoisonPolicy;
use crate::shipping::Shipper;
use crate::shutdown::Shutdown;

/// How many chunks of the source may wait for the confirmation of their records. Below the
/// source's demand, so that the next ones are received meanwhile.
const MAX_HELD: usize = 32;

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
    // What arrives is passed on as it is: no metadata record of this program's own.
    let observation = Observation::start(&args.observe, "send", shutdown, quiet)?;
    let context = (shutdown, &observation, quiet);
    let shipper = Shipper::start(&args.shipping, writer, false, context)?;
    let left_out = condition.as_ref().map(Condition::failures);
    let (mut figures, sent) = match source {
        RecordSource::Lines(lines, endpoint) => {
            observation.observed().endpoint("source", &endpoint);
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
    let filtered = left_out.as_ref().map_or(0, Failures::filtered);
    output::insert(&mut figures.document, "filtered", filtered);
    if let (Some(left_out), false) = (&left_out, quiet) {
        left_out.tell();
    }
    let document = json!({ "source": figures.document });
    // A medium that was given up explains why the source stopped, not the other way round.
    let (_, code) = shipper.conclude(observation, args.format, document)?;
    sent?;
    fields.as_ref().map_or(Ok(()), Fields::check)?;
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
    /// Whether a signal or the other medium ended it before the end of the lines.
    stopped_early: bool,
}

/// Decodes the chunks of a medium and emits their records; settles them when they are confirmed
/// at the other end.
fn send_medium(
    (args, poison, decoder): (&SendArgs, &PoisonPolicy, ChunkDecoder),
    open: OpenReader,
    (condition, fields): (Option<Condition>, Option<&Fields>),
    shipper: &Shipper,
    (shutdown, observation, quiet): (&Shutdown, &Observation, bool),
    progress: &Progress,
) -> (SourceFigures, Result<(), Failure>) {
    observation.observed().endpoint("source", &open.endpoint);
    let mut source = poison.apply(Source::new(open.reader).with_decoder(decoder));
    observation.observed().receives(source.watch());
    let give_up = args.idle_timeout.map(|_| args.shipping.give_up);
    let mut patience = Patience::new(&open.endpoint, give_up, quiet);
    let held = Held::default();
    let mut stage: Box<dyn Stage + '_> = Box::new(Forward { shipper, held });
    if let Some(fields) = fields {
        stage = Box::new(fields.narrow(stage));
    }
    if let Some(condition) = condition {
        stage = Box::new(Where::new(condition, stage));
    }
    if let Some(fields) = fields {
        stage = Box::new(fields.note(stage));
    }
    let idle_timeout = args.idle_timeout;
    let (report, sent) = patience.run_source(source, stage, idle_timeout, shutdown, |report| {
        progress.show(report.records, || {
            let records = output::number(report.records);
            format!("{records} records from {}", open.endpoint)
        });
        !shipper.should_stop()
    });
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
    (figures, sent)
}

/// Emits records as they are, and lets go of their chunks when everything emitted is confirmed.
struct Forward<'a> {
    shipper: &'a Shipper,
    held: Held,
}

impl Stage for Forward<'_> {
    fn name(&self) -> &'static str {
        "send"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        for (_, record) in parcel.records() {
            if !self.shipper.controller().emit_as_is(record) && self.shipper.should_stop() {
                return Err(AnalysisError::stage(
                    self.name(),
                    "ended before a chunk was sent",
                ));
            }
        }
        self.held.push(parcel);
        if self.held.len() >= MAX_HELD {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        if self.held.is_empty() {
            return Ok(());
        }
        self.shipper
            .flush()
            .map_err(|message| AnalysisError::stage("send", message))?;
        self.held.release_all();
        Ok(())
    }
}
