//! JSON lines of a file or of standard input to a medium.
//!
//! line -> record -> controller -> writer; the position is saved when the lines before
//! are confirmed

use std::time::{Duration, Instant};

use baler_analysis::json_lines::{BadJsonLine, JsonLinesReader, Next};
use baler_analysis::quarantine::{Poison, Quarantine as _};
use baler_common::record::DynamicRecord;
use baler_common::transport::Origin;
use serde_json::json;

use super::SourceFigures;
use crate::condition::Condition;
use crate::exit::{Code, Failure};
use crate::fields::Narrower;
use crate::output::{self, Progress};
use crate::quarantine::SharedQuarantine;
use crate::shipping::Shipper;
use crate::shutdown::Shutdown;

/// How often the position is saved. Before that, everything sent must be confirmed, which costs a
/// round trip.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// How long to wait at the end of a followed file before the next look.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Sends JSON lines.
pub(super) struct LinesSender<'a> {
    pub(super) lines: Box<JsonLinesReader>,
    /// The name of the lines.
    pub(super) endpoint: String,
    pub(super) quarantine: SharedQuarantine,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) condition: Option<Condition>,
    pub(super) narrower: Option<Narrower>,
    pub(super) shipper: &'a Shipper,
    pub(super) shutdown: &'a Shutdown,
}

/// The counts of the lines that were read.
#[derive(Default)]
struct Counts {
    records: u64,
    /// Lines that are not JSON objects.
    bad: u64,
    /// How often lines were gone before they were read.
    lost: u64,
}

/// The reason why reading ends.
enum Ended {
    AtEnd,
    /// A signal came, or the medium was given up. A line that was read and not sent may be left.
    Stopped {
        is_unsent: bool,
    },
}

impl LinesSender<'_> {
    /// Emits the records of lines, in order, until the end of the lines, the idle timeout or a signal.
    pub(super) fn send(mut self, progress: &Progress) -> (SourceFigures, Result<(), Failure>) {
        let mut counts = Counts::default();
        let ended = self.send_lines(&mut counts, progress);
        let stopped_early = matches!(ended, Ok(Ended::Stopped { .. }));
        // After an error, or with a line that was read and not sent, the last saved position stays
        // valid. Lines may be sent twice, but none is skipped.
        let sent = match ended {
            Ok(Ended::Stopped { is_unsent: true }) => Ok(()),
            Ok(_) => self.save(),
            Err(failure) => Err(failure),
        };
        let figures = SourceFigures {
            document: json!({
                "from": self.endpoint,
                "records": counts.records,
                "bad_lines": { "not_json": counts.bad },
                "lost": counts.lost,
                "stopped_early": stopped_early,
            }),
            is_incomplete: counts.bad > 0 || counts.lost > 0,
            stopped_early,
        };
        (figures, sent)
    }

    fn send_lines(&mut self, counts: &mut Counts, progress: &Progress) -> Result<Ended, Failure> {
        let mut idle_since = None;
        let mut next_save = Instant::now() + SAVE_EVERY;
        while !self.shipper.should_stop() {
            match self.read()? {
                Next::End => return Ok(Ended::AtEnd),
                Next::Waiting => {
                    let idle_since: Instant = *idle_since.get_or_insert_with(Instant::now);
                    let is_idle = |limit| idle_since.elapsed() >= limit;
                    if self.idle_timeout.is_some_and(is_idle) {
                        return Ok(Ended::AtEnd);
                    }
                    self.save()?;
                    self.shutdown.wait_until(Instant::now() + POLL_INTERVAL);
                    continue;
                }
                Next::Record(record) => {
                    idle_since = None;
                    if !self.emit(&record)? && self.shipper.should_stop() {
                        return Ok(Ended::Stopped { is_unsent: true });
                    }
                    counts.records = counts.records.saturating_add(1);
                    // Reading the clock for each record would add a tenth to its cost.
                    if !counts.records.is_multiple_of(64) {
                        continue;
                    }
                }
                Next::Bad(line) => {
                    counts.bad = counts.bad.saturating_add(1);
                    self.put_aside(&line)?;
                }
                Next::Lost(why) => {
                    counts.lost = counts.lost.saturating_add(1);
                    output::say(format_args!("lines were lost: {why}"));
                }
            }
            idle_since = None;
            if Instant::now() >= next_save {
                self.save()?;
                next_save = Instant::now() + SAVE_EVERY;
            }
            progress.show(counts.records, || {
                let records = output::number(counts.records);
                format!("{records} records from {}", self.endpoint)
            });
        }
        Ok(match idle_since {
            // Everything that a followed file has was sent.
            Some(_) => Ended::AtEnd,
            None => Ended::Stopped { is_unsent: false },
        })
    }

    fn read(&mut self) -> Result<Next, Failure> {
        self.lines.read().map_err(|error| {
            let message = format!("cannot read {}: {error}", self.endpoint);
            Failure::new(Code::Unavailable, message)
        })
    }

    /// Emits a record if it meets the condition. Returns whether there was room.
    fn emit(&mut self, record: &DynamicRecord) -> Result<bool, Failure> {
        if let Some(narrower) = &mut self.narrower {
            // Each type is registered with its fields, even if none of its records passes.
            narrower.schema(record.schema());
        }
        let condition = self.condition.as_ref();
        if condition.is_some_and(|condition| !condition.passes(record.as_ref(), None)) {
            return Ok(true);
        }
        let controller = &self.shipper.controller;
        let Some(narrower) = &mut self.narrower else {
            return Ok(controller.emit_as_is(record.as_ref()));
        };
        let narrowed = narrower.narrow(record);
        let narrowed = narrowed.map_err(|error| Failure::new(Code::Data, error.to_string()))?;
        Ok(controller.emit_as_is(narrowed.as_ref()))
    }

    /// Saves the position if it is in use and has changed. Waits until all lines before it are
    /// confirmed.
    fn save(&mut self) -> Result<(), Failure> {
        if !self.lines.has_moved() {
            return Ok(());
        }
        let flushed = self.shipper.flush();
        flushed.map_err(|message| Failure::new(Code::Unavailable, message))?;
        self.lines.save_position().map_err(|error| {
            let message = format!("cannot save the position of {}: {error}", self.endpoint);
            Failure::new(Code::Output, message)
        })
    }

    /// Puts a line that is not a record into the quarantine, if there is one.
    fn put_aside(&mut self, line: &BadJsonLine) -> Result<(), Failure> {
        let origin = Origin {
            endpoint: self.endpoint.as_str().into(),
            lane: "line".into(),
            position: line.offset,
        };
        let put = self.quarantine.put_aside(Poison {
            bytes: &line.bytes,
            origin: &origin,
            meta: None,
            is_sound: false,
            reason: &line.reason,
            peer: None,
        });
        put.map(drop)
            .map_err(|error| Failure::new(Code::Output, format!("the quarantine: {error}")))
    }
}
