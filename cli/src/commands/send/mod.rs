//! `baler send`: the records of a log, of JSON lines or of a medium to another medium.
//!
//! log, lines, or reader -> source -> [`Forward`] -> controller -> writer; settled when confirmed

mod log;

use std::num::NonZeroUsize;

use baler_analysis::{AnalysisError, Held, Parcel, Source, Stage};
use baler_common::container::ChunkDecoder;
use log::LogSender;
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

/// How many chunks of the source may wait for the confirmation of their records. Below the
/// source's demand, so that the next ones are received meanwhile.
const MAX_HELD: usize = 32;

/// Sends until the end of the source, the idle timeout or a signal.
pub(super) fn run(args: &SendArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let writer = endpoint::spooled_writer(&args.to, &args.spool)?;
    let poison = PoisonPolicy::new(&args.quarantine, &args.attempts, shutdown.timeout())?;
    let decoder = decoding::decoder(&args.decoding, NonZeroUsize::MIN)?;
    let source = endpoint::open_source(&args.from)?;
    let progress = Progress::spinner(quiet);
    // What arrives is passed on as it is: no metadata record of this program's own.
    let observation = Observation::start(&args.observe, "send", shutdown, quiet)?;
    let context = (shutdown, &observation, quiet);
    let shipper = Shipper::start(&args.shipping, writer, false, context)?;
    let (figures, sent) = match source {
        RecordSource::Log(lines, endpoint) => {
            observation.observed().endpoint("source", &endpoint);
            let sender = LogSender {
                lines,
                endpoint,
                quarantine: poison.quarantine,
                idle_timeout: args.idle_timeout,
                shipper: &shipper,
                shutdown,
                quiet,
            };
            sender.send(&progress)
        }
        RecordSource::Medium(open) => {
            output::listening(open.listens_on, None, quiet)?;
            send_medium((args, &poison, decoder), open, &shipper, context, &progress)
        }
    };
    progress.clear();
    let document = json!({ "source": figures.document });
    // A medium that was given up explains why the source stopped, not the other way round.
    let (_, code) = shipper.conclude(observation, args.format, document)?;
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

/// Decodes the chunks of a medium and emits their records; settles them when they are confirmed
/// at the other end.
fn send_medium(
    (args, poison, decoder): (&SendArgs, &PoisonPolicy, ChunkDecoder),
    open: OpenReader,
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
    let forward = Forward { shipper, held };
    let idle_timeout = args.idle_timeout;
    let (report, sent) = patience.run_source(source, forward, idle_timeout, shutdown, |report| {
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
