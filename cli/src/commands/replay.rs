//! `baler replay`: sends quarantined or stored chunks to a medium.
//!
//! folder or reader -> unwrapped and checked -> relay -> writer: byte for byte. With a filter,
//! [`send_filtered`] sends the records that pass in place of the relay.

mod checked;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use baler_analysis::Source;
use baler_analysis::filters::{Condition, Fields};
use baler_common::transport::{ChunkReader, Received};
use baler_connector_file::quarantine::QuarantineReader;
use checked::{Checked, lock};
use serde_json::{Value, json};

use super::relay::Passage;
use super::send::{Forwarding, add_filtered, figures};
use crate::args::ReplayArgs;
use crate::decoding;
use crate::endpoint::{self, Writer};
use crate::exit::{Code, Failure};
use crate::filters;
use crate::observe::Observation;
use crate::output;
use crate::patience::Patience;
use crate::relay::{self, Relay, Stop};
use crate::shipping::Shipper;
use crate::shutdown::{Shutdown, is_partial};

/// Replays until the end of the source, the idle timeout or a signal.
pub(super) fn run(args: &ReplayArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let (condition, fields) = (args.condition.expression()?, args.fields.chosen()?);
    let target = args.to.as_ref();
    let target = target
        .map(|to| endpoint::with_schemas(to, &args.decoding.schemas))
        .map(|to| endpoint::spooled_writer(&to, &args.spool))
        .transpose()?;
    let memory_parts = decoding::memory_parts(fields.as_ref(), NonZeroUsize::MIN);
    let decoder = decoding::decoder(&args.decoding, memory_parts)?;
    let (from, reader) = open(args)?;
    let reader = Checked::new(reader, decoder);
    let looked = reader.looked();
    let give_up = Some(args.shipping.give_up);
    let (mut sent, mut ended) = (None, Code::Done);
    match target {
        None => {
            let patience = Patience::new(&from, give_up, quiet);
            ended = check(reader, args.idle_timeout, patience, shutdown)?;
        }
        Some(target) => {
            let observation = Observation::start(&args.observe, "replay", shutdown, quiet)?;
            let passed = if condition.is_some() || fields.is_some() {
                let decoder = decoding::decoder(&args.decoding, memory_parts)?;
                let source = Source::new(Box::new(reader)).with_decoder(decoder);
                send_filtered(args, source, &from, target, condition, fields, &observation)?
            } else {
                let settings = relay::settings();
                let passage = Passage {
                    relay: Relay::new(Box::new(reader), target.writer, settings),
                    from,
                    to: target.endpoint,
                    spool: target.spool,
                    stop: Stop {
                        idle_timeout: Some(args.idle_timeout),
                        chunks: None,
                    },
                    give_up,
                };
                passage.run(&observation, quiet, shutdown)
            };
            sent = Some((passed, observation.finish()));
        }
    }
    let looked = lock(&looked).clone();
    // The names are part of the program's interface.
    let mut document = json!(looked);
    let mut ended = Ok(ended);
    if let Some(((sent, outcome), served)) = sent {
        output::insert(&mut document, "sent", sent);
        ended = served.and(outcome);
    }
    output::document(args.format, &document)?;
    Ok(match ended? {
        Code::Done if looked.undecodable > 0 => Code::Data,
        code => code,
    })
}

/// Sends the records that pass, or some of their fields, until the end of the source, the idle
/// timeout or a signal. Returns the figures of both ends, and the result.
///
/// The chunks are new and have an identity of this run. Under the old identity, a consumer that
/// settled the original chunk would drop the new chunk as a copy. The positions that identify
/// records would also change.
///
/// # Errors
///
/// The flags of chunks exclude each other.
fn send_filtered(
    args: &ReplayArgs,
    source: Source,
    from: &str,
    target: Writer,
    condition: Option<Condition>,
    fields: Option<Fields>,
    observation: &Observation,
) -> Result<(Value, Result<Code, Failure>), Failure> {
    let shutdown = &observation.shutdown;
    if let Some(condition) = condition.clone() {
        observation.observed.add(Box::new(condition));
    }
    // This program adds no metadata record of its own.
    let shipping = args.shipping.of_source(from);
    let shipper = Shipper::start(&shipping, target, false, observation)?;
    let forwarding = Forwarding {
        source,
        endpoint: from,
        condition: condition.clone(),
        fields: fields.as_ref(),
        shipper: &shipper,
        idle_timeout: Some(args.idle_timeout),
        give_up: Some(args.shipping.give_up),
    };
    let (report, forwarded) = forwarding.run(observation);
    let mut source = figures(from, &report);
    add_filtered(&mut source, condition.as_ref(), observation.quiet);
    let sent = shipper.finish();
    let mut document = sent.document.clone();
    output::insert(&mut document, "source", source);
    // A medium that was given up explains why the source stopped, not the other way round.
    let ended = sent.conclude().and_then(|code| {
        forwarded?;
        fields.as_ref().map_or(Ok(()), Fields::check)?;
        Ok(match code {
            Code::Done if report.given_back > 0 || is_partial(report.reached_end, shutdown) => {
                Code::Incomplete
            }
            Code::Done => filters::code(condition.as_ref()),
            code => code,
        })
    });
    Ok((document, ended))
}

/// Opens the folder of a quarantine, or a medium. Also returns its name.
fn open(args: &ReplayArgs) -> Result<(String, Box<dyn ChunkReader>), Failure> {
    if endpoint::is_uri(&args.what) {
        let what = endpoint::with_schemas(&args.what, &args.decoding.schemas);
        if args.remove {
            return Err(Failure::configuration(
                "--remove is for a folder: what a medium confirmed is acknowledged there in any case",
            ));
        }
        let open = endpoint::open_reader(&what, false)?;
        return Ok((open.endpoint, open.reader));
    }
    let reader = QuarantineReader::open(Path::new(&args.what), args.remove)
        .map_err(|error| Failure::unavailable(&args.what, error))?;
    if reader.is_empty() {
        let message = "there is no .chunk file in it; a folder of segments is file:///folder";
        return Err(Failure::unavailable(&args.what, message));
    }
    Ok((args.what.clone(), Box::new(reader)))
}

/// Checks every chunk and settles none. A signal may end it before the end of the source.
fn check(
    mut reader: Checked,
    idle_timeout: Duration,
    mut patience: Patience,
    shutdown: &Shutdown,
) -> Result<Code, Failure> {
    let ends = reader.capability().ends;
    let is_complete =
        patience.receive_all(&mut reader, idle_timeout, shutdown, |_, received| {
            // An idle source with an end has no further chunks, except chunks that wait until earlier
            // ones are settled.
            Ok(match received {
                Received::Idle if ends => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        })?;
    match Box::new(reader).close(shutdown.deadline()).error {
        Some(error) => Err(error.into()),
        None if ends && !is_complete => Ok(Code::Incomplete),
        None => Ok(Code::Done),
    }
}
