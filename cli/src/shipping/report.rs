//! What became of the records that a command emitted.

use std::collections::BTreeMap;
use std::time::Duration;

use baler_common::container::{LossReason, Losses};
use baler_monitoring::ShutdownReport;
use serde::Serialize;

use super::SpoolFigures;
use crate::args::OverflowChoice;
use crate::exit::{Code, Failure};
use crate::output;
use crate::output::figures::by_reason;

/// What became of the records: `emitted` is `delivered`, `spooled` and all of `dropped`.
///
/// `chunks_made` is `chunks`, `chunks_spooled` and `chunks_given_up`, and also all of `closed_by`.
/// The names are part of the program's interface.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) to: String,
    pub(crate) emitted: u64,
    pub(crate) delivered: u64,
    /// Put on local disk while the medium was away.
    pub(crate) spooled: u64,
    pub(crate) dropped: BTreeMap<String, u64>,
    /// Chunks that the medium confirmed.
    pub(crate) chunks: u64,
    /// Chunks put on local disk while the medium was away.
    chunks_spooled: u64,
    /// Chunks that the medium refused or did not confirm in time.
    chunks_given_up: u64,
    /// Chunks made, the one that marks the end included.
    chunks_made: u64,
    /// Bytes of the chunks that the medium confirmed.
    pub(crate) bytes: u64,
    records_per_chunk: Option<f64>,
    bytes_per_chunk: Option<f64>,
    pub(crate) bytes_per_record: Option<f64>,
    closed_by: ClosedBy,
    splits: u64,
    retries: u64,
    reconnects: u64,
    seconds: f64,
    records_per_second: f64,
    /// What the spool did and holds, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    spool: Option<SpoolFigures>,
    #[serde(skip)]
    losses: Losses,
    #[serde(skip)]
    adds_up: bool,
    #[serde(skip)]
    chosen: Option<LossReason>,
    #[serde(skip)]
    given_up: Option<String>,
}

/// How often chunks were closed, by reason.
#[derive(Debug, Serialize)]
struct ClosedBy {
    age: u64,
    bytes: u64,
    flush: u64,
    records: u64,
}

impl Report {
    pub(super) fn new(
        report: &ShutdownReport,
        endpoint: &str,
        elapsed: Duration,
        overflow: OverflowChoice,
        given_up: Option<String>,
    ) -> Self {
        let stats = &report.stats;
        let (chunks, bytes) = (stats.chunks_delivered, stats.bytes_delivered);
        Self {
            to: endpoint.to_owned(),
            emitted: stats.emitted,
            delivered: stats.delivered,
            spooled: stats.spooled,
            dropped: by_reason(&stats.dropped),
            chunks,
            chunks_spooled: stats.chunks_spooled,
            chunks_given_up: stats.chunks_given_up,
            chunks_made: stats.chunks_encoded,
            bytes,
            records_per_chunk: quotient(stats.delivered, chunks),
            bytes_per_chunk: quotient(bytes, chunks),
            bytes_per_record: quotient(bytes, stats.delivered),
            closed_by: ClosedBy {
                age: stats.closed_by.age,
                bytes: stats.closed_by.bytes,
                flush: stats.closed_by.flush,
                records: stats.closed_by.records,
            },
            splits: stats.splits,
            retries: stats.outbox.retries,
            reconnects: stats.outbox.reopened,
            seconds: (elapsed.as_secs_f64() * 1e3).round() / 1e3,
            records_per_second: output::per_second(stats.delivered, elapsed),
            spool: None,
            losses: stats.dropped.clone(),
            adds_up: report.adds_up(),
            chosen: match overflow {
                OverflowChoice::Block => None,
                OverflowChoice::BlockWithTimeout => Some(LossReason::BlockTimeout),
                OverflowChoice::DropNewest => Some(LossReason::QueueFullNewest),
                OverflowChoice::DropOldest => Some(LossReason::QueueFullOldest),
            },
            given_up,
        }
    }

    /// The report of a run with a spool.
    pub(super) fn with_spool(mut self, spool: Option<SpoolFigures>) -> Self {
        self.spool = spool;
        self
    }

    /// With which code a command ends whose records these were.
    ///
    /// Records dropped by the policy that was asked for are no failure; they are in the report.
    ///
    /// # Errors
    ///
    /// The medium was given up, or the figures do not add up.
    pub(crate) fn conclude(&self) -> Result<Code, Failure> {
        if !self.adds_up {
            let message = format!(
                "{} emitted is not {} delivered plus {} spooled plus {} dropped: a fault of baler, \
                 please report it",
                self.emitted,
                self.delivered,
                self.spooled,
                self.losses.total()
            );
            return Err(Failure::new(Code::Internal, message));
        }
        // What is on disk is not lost: the next run with the same folder sends it on.
        let is_safe = self.spool.is_some() && self.losses.total() == 0;
        if let Some(given_up) = self.given_up.as_ref().filter(|_| !is_safe) {
            return Err(Failure::new(Code::Unavailable, given_up));
        }
        let lost = |reasons: &[LossReason]| reasons.iter().any(|it| self.losses.get(*it) > 0);
        // The medium refused them after they were on disk: they are in the spool's `refused`.
        if self.spool.as_ref().is_some_and(SpoolFigures::has_refused) {
            return Ok(Code::Data);
        }
        if lost(&[
            LossReason::TooLarge,
            LossReason::NotEncodable,
            LossReason::Refused,
        ]) {
            return Ok(Code::Data);
        }
        let chosen = self.chosen.map_or(0, |reason| self.losses.get(reason));
        if self.losses.total() > chosen {
            return Ok(Code::Incomplete);
        }
        Ok(Code::Done)
    }

    /// Whether `emitted` is `delivered` plus `spooled` plus all of `dropped`.
    pub(crate) fn adds_up(&self) -> bool {
        self.adds_up
    }

    /// The figures for people.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let number = output::number;
        let dropped = self.losses.total();
        let spooled = |count| match count {
            0 => String::new(),
            count => format!("{} spooled + ", number(count)),
        };
        let mut rows = vec![
            (
                "records",
                format!(
                    "{} emitted = {} delivered + {}{} dropped",
                    number(self.emitted),
                    number(self.delivered),
                    spooled(self.spooled),
                    number(dropped),
                ),
            ),
            (
                "chunks",
                format!(
                    "{} made = {} delivered + {}{} given up",
                    number(self.chunks_made),
                    number(self.chunks),
                    spooled(self.chunks_spooled),
                    number(self.chunks_given_up),
                ),
            ),
            (
                "bytes",
                format!(
                    "{} delivered ({} records and {} bytes a chunk, {} bytes a record)",
                    output::bytes(self.bytes),
                    output::decimal(self.delivered, self.chunks),
                    output::decimal(self.bytes, self.chunks),
                    output::decimal(self.bytes, self.delivered),
                ),
            ),
            (
                "closed by",
                format!(
                    "{} records, {} bytes, {} age, {} flush",
                    number(self.closed_by.records),
                    number(self.closed_by.bytes),
                    number(self.closed_by.age),
                    number(self.closed_by.flush),
                ),
            ),
            (
                "time",
                format!(
                    "{:.2} s, {} records/s",
                    self.seconds,
                    output::rate(self.records_per_second)
                ),
            ),
        ];
        for (reason, count) in &self.dropped {
            rows.push(("dropped", format!("{} {reason}", number(*count))));
        }
        if self.splits > 0 {
            rows.push(("split", format!("{} times", number(self.splits))));
        }
        if self.retries > 0 || self.reconnects > 0 {
            let text = format!(
                "{} chunks again, {} reconnects",
                self.retries, self.reconnects
            );
            rows.push(("retries", text));
        }
        rows.extend(self.spool.iter().flat_map(SpoolFigures::rows));
        rows
    }
}

/// With one decimal; nothing when there is nothing to divide by.
fn quotient(dividend: u64, divisor: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
    (divisor > 0).then(|| (dividend as f64 / divisor as f64 * 10.0).round() / 10.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::agreement::{assert_every_count_is_shown, spool_figures};
    use super::*;

    /// A report in which no two counts are alike.
    pub(crate) fn report() -> Report {
        Report {
            to: "null:".to_owned(),
            emitted: 1_001,
            delivered: 1_002,
            spooled: 1_003,
            dropped: BTreeMap::from([("refused".to_owned(), 1_004)]),
            chunks: 1_005,
            chunks_spooled: 1_006,
            chunks_given_up: 1_007,
            chunks_made: 1_008,
            bytes: 1_000_000_009,
            records_per_chunk: None,
            bytes_per_chunk: None,
            bytes_per_record: None,
            closed_by: ClosedBy {
                age: 1_010,
                bytes: 1_011,
                flush: 1_012,
                records: 1_013,
            },
            splits: 1_014,
            retries: 1_015,
            reconnects: 1_016,
            seconds: 0.5,
            records_per_second: 0.5,
            spool: Some(spool_figures()),
            losses: Losses::default(),
            adds_up: true,
            chosen: None,
            given_up: None,
        }
    }

    #[test]
    fn text_and_json_say_the_same() {
        let report = report();
        assert_every_count_is_shown(&report, &output::two_columns(&report.rows()));
    }
}
