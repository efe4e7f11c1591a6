//! The report on the records that a command emitted, and on its spool.

use std::time::Duration;

use baler_analysis::sinks::by_reason;
use baler_common::container::LossReason;
use baler_common::transport::WriterStats;
use baler_connector_file::spool::SpoolStatus;
use baler_monitoring::{ShutdownReport, Stats};
use serde_json::{Value, json};

use crate::args::OverflowChoice;
use crate::exit::{Code, Failure};
use crate::output;
use crate::output::figures::named_counts;

/// The report on the records: `emitted` is the sum of `delivered`, `spooled` and all of `dropped`.
#[derive(Debug)]
pub(crate) struct Report {
    report: ShutdownReport,
    /// The figures as JSON. The names are part of the program's interface.
    pub(crate) document: Value,
    overflow: OverflowChoice,
    given_up: Option<String>,
    spool: Option<SpoolStatus>,
}

impl Report {
    pub(super) fn new(
        report: ShutdownReport,
        endpoint: &str,
        elapsed: Duration,
        overflow: OverflowChoice,
        given_up: Option<String>,
        spool: Option<SpoolStatus>,
    ) -> Self {
        let stats = &report.stats;
        let (chunks, bytes) = (stats.chunks_delivered, stats.bytes_delivered);
        let mut document = json!({
            "to": endpoint,
            "emitted": stats.emitted,
            "delivered": stats.delivered,
            "spooled": stats.spooled,
            "dropped": by_reason(&stats.dropped),
            "chunks": chunks,
            "chunks_spooled": stats.chunks_spooled,
            "chunks_given_up": stats.chunks_given_up,
            "chunks_made": stats.chunks_encoded,
            "bytes": bytes,
            "records_per_chunk": quotient(stats.delivered, chunks),
            "bytes_per_chunk": quotient(bytes, chunks),
            "bytes_per_record": quotient(bytes, stats.delivered),
            "closed_by": {
                "age": stats.closed_by.age,
                "bytes": stats.closed_by.bytes,
                "flush": stats.closed_by.flush,
                "records": stats.closed_by.records,
            },
            "splits": stats.splits,
            "retries": stats.outbox.retries,
            "reconnects": stats.outbox.reopened,
            "seconds": output::seconds(elapsed),
            "records_per_second": output::per_second(stats.delivered, elapsed),
        });
        report_writer(&stats.outbox.writer, &mut document);
        if let Some(spool) = &spool {
            output::insert(&mut document, "spool", spool_figures(spool));
        }
        Self {
            report,
            document,
            overflow,
            given_up,
            spool,
        }
    }

    /// Returns the figures of the controller.
    pub(crate) fn stats(&self) -> &Stats {
        &self.report.stats
    }

    /// Returns the exit code of the command that emitted these records.
    ///
    /// Records dropped by the chosen policy are no failure; they are in the report.
    ///
    /// # Errors
    ///
    /// The medium was given up, or the figures do not add up.
    pub(crate) fn conclude(&self) -> Result<Code, Failure> {
        let stats = self.stats();
        let losses = &stats.dropped;
        if !self.adds_up() {
            let message = format!(
                "{} emitted is not {} delivered plus {} spooled plus {} dropped: a fault of baler, \
                 please report it",
                stats.emitted,
                stats.delivered,
                stats.spooled,
                losses.total()
            );
            return Err(Failure::new(Code::Internal, message));
        }
        if let Some(spool) = &self.spool {
            report_spool_losses(spool);
        }
        // The next run with the same folder sends the chunks on disk.
        let is_safe = self.spool.is_some() && losses.total() == 0;
        if let Some(given_up) = self.given_up.as_ref().filter(|_| !is_safe) {
            return Err(Failure::new(Code::Unavailable, given_up));
        }
        let lost = |reason| losses.get(reason);
        let refused = [
            LossReason::TooLarge,
            LossReason::NotEncodable,
            LossReason::Refused,
        ];
        if refused.into_iter().any(|reason| lost(reason) > 0)
            || stats.outbox.writer.losses > 0
            || self.spool.as_ref().is_some_and(spool_lost_chunks)
        {
            return Ok(Code::Data);
        }
        let asked_for = match self.overflow {
            OverflowChoice::Block => 0,
            OverflowChoice::BlockWithTimeout => lost(LossReason::BlockTimeout),
            OverflowChoice::DropNewest => lost(LossReason::QueueFullNewest),
            OverflowChoice::DropOldest => lost(LossReason::QueueFullOldest),
        };
        if losses.total() > asked_for {
            return Ok(Code::Incomplete);
        }
        Ok(Code::Done)
    }

    /// Whether `emitted` is `delivered` plus `spooled` plus all of `dropped`.
    pub(crate) fn adds_up(&self) -> bool {
        self.report.adds_up()
    }
}

/// Returns the figures of a spool. The sum of `found` and `spooled` is the sum of `replayed`,
/// `refused`, `lost` and `waiting`, in records and in chunks. The names are part of the program's
/// interface.
pub(crate) fn spool_figures(status: &SpoolStatus) -> Value {
    let mut figures = json!({
        "found": status.found_records,
        "found_chunks": status.found_chunks,
        "spooled": status.stats.spooled_records,
        "spooled_chunks": status.stats.spooled_chunks,
        "replayed": status.stats.replayed_records,
        "replayed_chunks": status.stats.replayed_chunks,
        "refused": status.refused_records,
        "refused_chunks": status.refused_chunks,
        "waiting": status.waiting_records,
        "waiting_chunks": status.stats.waiting_chunks,
        "waiting_bytes": status.stats.waiting_bytes,
        "lost": status.lost_records,
        "lost_chunks": status.lost_chunks,
        "disk_failures": status.disk_failures,
    });
    for (name, error) in [
        ("medium_error", &status.medium_error),
        ("disk_error", &status.disk_error),
    ] {
        if let Some(error) = error {
            output::insert(&mut figures, name, error.to_string());
        }
    }
    figures
}

/// Reports chunks that the disk of a spool has lost.
pub(crate) fn report_spool_losses(status: &SpoolStatus) {
    if status.lost_chunks > 0 {
        output::say(format_args!(
            "{} in {} were safe in the spool, and its disk no longer has them: they are lost",
            output::counted(status.lost_records, "record"),
            output::counted(status.lost_chunks, "chunk"),
        ));
    }
}

/// Adds a writer's figures of its medium to a document. Says how many values the medium does not have
/// as they are in the records; the writer itself logs the rest when it happens.
pub(crate) fn report_writer(stats: &WriterStats, document: &mut Value) {
    output::insert(document, "losses", stats.losses);
    output::insert(document, "lost_chunks", stats.lost_chunks);
    if !stats.counts.is_empty() {
        output::insert(document, "counts", named_counts(&stats.counts));
    }
    let altered = stats.altered;
    output::insert(document, "altered", altered);
    if altered > 0 {
        output::say(format_args!(
            "{} are not in the target as they are in the records, because its format has no form \
             for them; see the README of its connector",
            output::counted(altered, "value"),
        ));
    }
}

/// Whether the medium refused chunks after they were spooled, or the disk damaged them.
pub(crate) fn spool_lost_chunks(status: &SpoolStatus) -> bool {
    status.refused_records > 0 || status.lost_chunks > 0
}

/// Returns a quotient with one decimal, or `None` if the divisor is 0.
fn quotient(dividend: u64, divisor: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
    (divisor > 0).then(|| (dividend as f64 / divisor as f64 * 10.0).round() / 10.0)
}
