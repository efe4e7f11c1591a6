//! `baler replay`: quarantined or stored chunks to a medium.
//!
//! folder or reader -> unwrapped and checked -> relay -> writer: byte for byte. With a filter,
//! [`Filtered`] sends the records that pass in place of the relay.

mod checked;
mod filtered;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use baler_analysis::Source;
use baler_common::transport::{ChunkReader, Received};
use baler_connector_file::QuarantineReader;
use baler_relay::{Relay, Stop};
use checked::{Checked, lock};
use filtered::Filtered;

use super::relay::Passage;
use crate::args::ReplayArgs;
use crate::decoding;
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::fields::memory_parts;
use crate::observe::Observation;
use crate::output;
use crate::patience::Patience;
use crate::shutdown::Shutdown;

/// Replays until the end of the source, the idle timeout or a signal.
pub(super) fn run(args: &ReplayArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let (condition, fields) = (args.condition.expression()?, args.fields.chosen()?);
    let is_filtered = condition.is_some() || fields.is_some();
    let target = args.to.as_ref();
    let target = target
        .map(|to| endpoint::spooled_writer(to, &args.spool))
        .transpose()?;
    let memory_parts = memory_parts(fields.as_ref(), NonZeroUsize::MIN);
    let decoder = decoding::decoder(&args.decoding, memory_parts)?;
    let (from, reader) = open(args)?;
    let reader = Checked::new(reader, decoder);
    let looked = reader.looked();
    let give_up = Some(args.shipping.give_up);
    let mut sent = None;
    match target {
        None => {
            let patience = Patience::new(&from, give_up, quiet);
            check(reader, args.idle_timeout, patience, shutdown)?;
        }
        Some(target) if is_filtered => {
            let observation = Observation::start(&args.observe, "replay", shutdown, quiet)?;
            let filtered = Filtered {
                source: Source::new(Box::new(reader))
                    .with_decoder(decoding::decoder(&args.decoding, memory_parts)?),
                from,
                condition,
                fields,
            };
            let context = (shutdown, &observation, quiet);
            let passed = filtered.send(args, target, context)?;
            sent = Some((passed, observation.finish()));
        }
        Some(target) => {
            let observation = Observation::start(&args.observe, "replay", shutdown, quiet)?;
            let mut stop = Stop::default();
            stop.idle_timeout = Some(args.idle_timeout);
            let settings = baler_relay::settings();
            let passage = Passage {
                relay: Relay::new(Box::new(reader), target.writer, settings),
                from,
                to: target.endpoint,
                spool: target.spool,
                stop,
                give_up,
            };
            let passed = passage.run(&observation, quiet, shutdown);
            sent = Some((passed, observation.finish()));
        }
    }
    let looked = lock(&looked).clone();
    // The names are part of the program's interface.
    let mut document = serde_json::to_value(&looked)
        .map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
    let mut ended = Ok(Code::Done);
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

/// A folder of a quarantine, or a medium; with its name.
fn open(args: &ReplayArgs) -> Result<(String, Box<dyn ChunkReader>), Failure> {
    if endpoint::is_uri(&args.what) {
        if args.remove {
            return Err(Failure::configuration(
                "--remove is for a folder: what a medium confirmed is acknowledged there in any case",
            ));
        }
        let open = endpoint::open_reader(&args.what, false)?;
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

/// Looks at everything and settles nothing.
fn check(
    mut reader: Checked,
    idle_timeout: Duration,
    mut patience: Patience,
    shutdown: &Shutdown,
) -> Result<(), Failure> {
    let ends = reader.capability().ends;
    patience.receive_all(&mut reader, idle_timeout, shutdown, |_, received| {
        // Nothing now is nothing ever, except what waits behind what is not settled.
        Ok(match received {
            Received::Idle if ends => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    })?;
    match Box::new(reader).close(shutdown.deadline()).error {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
