//! `baler replay`: quarantined or stored chunks to a medium, byte for byte.
//!
//! folder or reader -> unwrapped and checked -> relay -> writer

mod checked;
mod folder;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, Received};
use baler_relay::{Relay, RelaySettings, Stop};
use checked::{Checked, CheckedFigures, lock};
use folder::FolderReader;
use serde::Serialize;

use super::relay::{EndedBy, Summary, failure};
use crate::args::ReplayArgs;
use crate::decoding;
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::output;
use crate::patience::{Patience, RelayPatience};
use crate::shutdown::Shutdown;

/// What `replay` did. The names are part of the program's interface.
#[derive(Debug, Serialize)]
struct Document {
    #[serde(flatten)]
    looked: CheckedFigures,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<Summary>,
}

/// Replays until the end of the source, the idle timeout or a signal.
pub(super) fn run(args: &ReplayArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let target = match &args.to {
        Some(to) => Some(endpoint::wrap(endpoint::writer(to)?, &args.spool)),
        None => None,
    };
    let decoder = decoding::decoder(&args.decoding, NonZeroUsize::MIN)?;
    let (from, reader) = open(args)?;
    let reader = Checked::new(reader, decoder, args.undecodable);
    let looked = reader.looked();
    let Some(target) = target else {
        let give_up = args.give_up.limit(Some(args.idle_timeout));
        let patience = Patience::new(&from, give_up, quiet);
        check(reader, args.idle_timeout, patience, shutdown)?;
        let looked = lock(&looked).clone();
        let code = code(&looked);
        let document = Document { looked, sent: None };
        output::result(args.format, &document, || text(&document))?;
        return Ok(code);
    };
    let started = Instant::now();
    let settings = RelaySettings::default();
    let mut relay = Relay::new(Box::new(reader), target.writer, &settings);
    let mut stop = Stop::default();
    stop.idle_timeout = Some(args.idle_timeout);
    let give_up = args.give_up.limit(Some(args.idle_timeout));
    let endpoints = (from, target.endpoint);
    let spool = target.spool.clone();
    let mut patience = RelayPatience::new(&endpoints, give_up, quiet, target.spool);
    let in_flight = Arc::new(AtomicU64::new(0));
    let left = Arc::clone(&in_flight);
    shutdown.drains(quiet, move || left.load(Ordering::Relaxed));
    let ended = relay.run(stop, |relay| {
        let stats = relay.stats();
        in_flight.store(stats.in_flight, Ordering::Relaxed);
        patience.look(&stats);
        !shutdown.is_requested() && !patience.is_over()
    });
    let ended = patience.judge(ended, failure);
    let report = relay.close(shutdown.deadline());
    let ended_by = EndedBy::of(&ended);
    let elapsed = started.elapsed();
    let sent =
        Summary::new(endpoints, &report.stats, ended_by, None, elapsed).with_spool(spool.as_ref());
    let looked = lock(&looked).clone();
    let codes = (sent.code(), code(&looked));
    let sent = Some(sent);
    let document = Document { looked, sent };
    output::result(args.format, &document, || text(&document))?;
    ended?;
    if let Some(error) = report.error {
        return Err(failure(error));
    }
    Ok(match codes {
        (Code::Done, looked) => looked,
        (sent, _) => sent,
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
    let reader = FolderReader::open(Path::new(&args.what), args.remove)
        .map_err(|error| Failure::unavailable(&args.what, error))?;
    if reader.len() == 0 {
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

fn code(looked: &CheckedFigures) -> Code {
    if looked.undecodable > 0 {
        Code::Data
    } else {
        Code::Done
    }
}

fn text(document: &Document) -> String {
    let number = output::number;
    let looked = &document.looked;
    let mut text = output::two_columns(&[
        (
            "decodable",
            format!(
                "{} chunks, {} records; {} chunks were unwrapped",
                number(looked.decodable),
                number(looked.records),
                number(looked.unwrapped)
            ),
        ),
        (
            "undecodable",
            format!(
                "{}, {} skipped",
                number(looked.undecodable),
                number(looked.skipped)
            ),
        ),
    ]);
    for problem in &looked.problems {
        text.push_str(&format!("  {problem}\n"));
    }
    if let Some(sent) = &document.sent {
        text.push_str(&sent.text());
    }
    text
}
