//! JSON lines of a file or of standard input to a medium.
//!
//! line -> record -> controller -> writer; the position is saved when the lines before are confirmed

use std::time::{Duration, Instant};

use baler_analysis::json_lines::{BadJsonLine, Next};
use baler_analysis::quarantine::{Poison, Quarantine as _};
use baler_common::transport::Origin;
use serde_json::json;

use super::SourceFigures;
use crate::endpoint::JsonLines;
use crate::exit::{Code, Failure};
use crate::output::{self, Progress};
use crate::quarantine::SharedQuarantine;
use crate::shipping::Shipper;
use crate::shutdown::Shutdown;

/// How often the position is saved. Everything sent is confirmed before, which costs a round trip.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// How long to wait at the end of a file that is followed before looking at it again.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Emits the records of lines, in order, until the end of the input, the idle timeout or a signal.
pub(super) fn send(
    mut lines: JsonLines,
    idle_timeout: Option<Duration>,
    mut aside: SharedQuarantine,
    (shipper, shutdown): (&Shipper, &Shutdown),
    progress: &Progress,
) -> (SourceFigures, Result<(), Failure>) {
    let mut counts = Counts::default();
    let mut idle_since = None;
    let mut next_save = Instant::now() + SAVE_EVERY;
    let mut is_unsent = false;
    let ended = loop {
        if shipper.should_stop() {
            break Ok(());
        }
        match lines.reader.read() {
            Ok(Next::End) => break Ok(()),
            Ok(Next::Waiting) => {
                let idle_since: Instant = *idle_since.get_or_insert_with(Instant::now);
                if idle_timeout.is_some_and(|limit| idle_since.elapsed() >= limit) {
                    break Ok(());
                }
                if let Err(failure) = save(&mut lines, shipper) {
                    break Err(failure);
                }
                shutdown.wait_until(Instant::now() + LOOK_EVERY);
                continue;
            }
            Ok(Next::Record(record)) => {
                idle_since = None;
                if !shipper.controller().emit_as_is(record.as_ref()) && shipper.should_stop() {
                    is_unsent = true;
                    break Ok(());
                }
                counts.records = counts.records.saturating_add(1);
                // Looking at the clock for each record would cost a tenth of it.
                if counts.records % 64 != 0 {
                    continue;
                }
            }
            Ok(Next::Bad(line)) => {
                counts.bad = counts.bad.saturating_add(1);
                if let Err(failure) = put_aside(&mut aside, &lines.endpoint, &line) {
                    break Err(failure);
                }
            }
            Ok(Next::Lost(why)) => {
                counts.lost = counts.lost.saturating_add(1);
                output::say(format_args!("lines were lost: {why}"));
            }
            Err(error) => {
                let message = format!("cannot read {}: {error}", lines.endpoint);
                break Err(Failure::new(Code::Unavailable, message));
            }
        }
        idle_since = None;
        if Instant::now() >= next_save {
            if let Err(failure) = save(&mut lines, shipper) {
                break Err(failure);
            }
            next_save = Instant::now() + SAVE_EVERY;
        }
        progress.show(counts.records, || {
            let records = output::number(counts.records);
            format!("{records} records from {}", lines.endpoint)
        });
    };
    let stopped_early = shipper.should_stop();
    // After an error, or a line that was read and not sent, the last position holds: lines may be sent
    // twice, and none is skipped.
    let ended = match is_unsent {
        true => ended,
        false => ended.and_then(|()| save(&mut lines, shipper)),
    };
    let figures = SourceFigures {
        document: json!({
            "from": lines.endpoint,
            "records": counts.records,
            "bad_lines": { "not_json": counts.bad },
            "lost": counts.lost,
            "stopped_early": stopped_early,
        }),
        is_incomplete: counts.bad > 0 || counts.lost > 0,
        stopped_early,
    };
    (figures, ended)
}

/// The names in the document are part of the program's interface.
#[derive(Default)]
struct Counts {
    records: u64,
    bad: u64,
    /// How often lines were gone before they were read.
    lost: u64,
}

/// Saves the position, if it is to be saved and changed, after all lines before it are confirmed.
fn save(lines: &mut JsonLines, shipper: &Shipper) -> Result<(), Failure> {
    if !lines.reader.has_moved() {
        return Ok(());
    }
    let flushed = shipper.flush();
    flushed.map_err(|message| Failure::new(Code::Unavailable, message))?;
    lines.reader.save_position().map_err(|error| {
        let message = format!("cannot save the position of {}: {error}", lines.endpoint);
        Failure::new(Code::Output, message)
    })
}

/// Puts a line that is no record into the quarantine, if there is one.
fn put_aside(
    aside: &mut SharedQuarantine,
    endpoint: &str,
    line: &BadJsonLine,
) -> Result<(), Failure> {
    let origin = Origin {
        endpoint: endpoint.into(),
        lane: "line".into(),
        position: line.offset,
    };
    let poison = Poison {
        bytes: &line.bytes,
        origin: &origin,
        meta: None,
        is_sound: false,
        reason: &line.reason,
    };
    let put = aside.put_aside(poison);
    put.map_err(|error| Failure::new(Code::Output, format!("the quarantine: {error}")))
}
