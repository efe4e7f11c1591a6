//! The records of a medium, filtered, to another medium.
//!
//! source -> where -> fields -> [`Forward`] -> controller -> writer; settled when confirmed

use std::time::Duration;

use baler_analysis::filters::{Condition, Fields, Where};
use baler_analysis::{AnalysisError, Held, Parcel, Source, SourceReport, Stage};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::filters;
use crate::observe::Observation;
use crate::output::figures::{named_counts, not_kept};
use crate::output::{self, Progress};
use crate::patience::Patience;
use crate::shipping::{STAGE, Shipper};

/// The maximum number of source chunks that wait for the confirmation of their records. It is below
/// the source's demand, so that further chunks are received meanwhile.
const MAX_HELD: usize = 32;

/// Decodes the chunks of a medium and emits their records. It settles a chunk when the target has
/// confirmed its records.
pub(in crate::commands) struct Forwarding<'a> {
    pub(in crate::commands) source: Source,
    /// The name of the source.
    pub(in crate::commands) endpoint: &'a str,
    pub(in crate::commands) condition: Option<Condition>,
    pub(in crate::commands) fields: Option<&'a Fields>,
    pub(in crate::commands) shipper: &'a Shipper,
    pub(in crate::commands) idle_timeout: Option<Duration>,
    /// How long nothing may move at the source before it is given up.
    pub(in crate::commands) give_up: Option<Duration>,
}

impl Forwarding<'_> {
    /// Forwards until the end of the source, the idle timeout, a signal, or until a medium is given
    /// up. Returns the figures of the source, also after a failure.
    pub(in crate::commands) fn run(
        mut self,
        observation: &Observation,
    ) -> (SourceReport, Result<(), Failure>) {
        let progress = Progress::spinner(observation.quiet);
        let (endpoint, shipper) = (self.endpoint, self.shipper);
        let observed = &observation.observed;
        observed.endpoint("source", endpoint);
        observed.receives(self.source.watch());
        let mut patience = Patience::new(endpoint, self.give_up, observation.quiet);
        let held = Held::default();
        // Filters leave strings in a batch that its records no longer have.
        let is_whole = self.condition.is_none() && self.fields.is_none();
        let mut stage: Box<dyn Stage + '_> = Box::new(Forward {
            shipper,
            is_whole,
            held,
        });
        if let Some(fields) = self.fields {
            stage = Box::new(fields.narrow(stage));
        }
        if let Some(condition) = self.condition {
            stage = Box::new(Where::new(condition, stage));
        }
        if let Some(fields) = self.fields {
            stage = Box::new(fields.note(stage));
        }
        let (idle_timeout, shutdown) = (self.idle_timeout, &observation.shutdown);
        patience.run_source(self.source, stage, idle_timeout, shutdown, |report| {
            progress.show(report.records, || {
                let records = output::number(report.records);
                format!("{records} records from {endpoint}")
            });
            !shipper.should_stop()
        })
    }
}

/// Returns the figures of the source. The names are part of the program's interface.
pub(in crate::commands) fn figures(endpoint: &str, report: &SourceReport) -> Value {
    json!({
        "from": endpoint,
        "records": report.records,
        "chunks": report.chunks,
        "acknowledged": report.acknowledged,
        "given_back": report.given_back,
        "quarantined": report.quarantined,
        "not_kept": not_kept(&report.not_kept()),
        "removals": report.reader.removals,
        "removed": report.reader.removed,
        "redelivered": report.redelivered,
        "duplicates_within_reader": report.duplicates,
        "counts": named_counts(&report.reader.counts),
    })
}

/// Adds the figures of the records that did not pass a condition, and reports the ones that it cannot
/// judge, unless `quiet`.
pub(in crate::commands) fn add_filtered(
    figures: &mut Value,
    condition: Option<&Condition>,
    quiet: bool,
) {
    let filtered = condition.map_or(0, Condition::filtered);
    output::insert(figures, "filtered", filtered);
    filters::insert(condition, figures);
    if !quiet {
        filters::report_undecided(condition);
    }
}

/// Emits records unchanged, and releases their chunks when all emitted records are confirmed.
struct Forward<'a> {
    shipper: &'a Shipper,
    /// Whether chunks come here as they were.
    is_whole: bool,
    held: Held,
}

impl Stage for Forward<'_> {
    fn name(&self) -> &'static str {
        STAGE
    }

    fn accept(&mut self, mut parcel: Parcel) -> Result<(), AnalysisError> {
        let (controller, records) = (&self.shipper.controller, parcel.len());
        let sent = if self.is_whole {
            let (batch, receipt) = parcel.into_batch();
            parcel = receipt;
            controller.emit_batch(batch)
        } else {
            let records = parcel.records();
            records
                .filter(|(_, record)| controller.emit_as_is(*record))
                .count()
        };
        if sent < records && self.shipper.should_stop() {
            return Err(AnalysisError::Stalled { stage: STAGE });
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
        self.shipper.flush()?;
        self.held.release_all();
        Ok(())
    }
}
