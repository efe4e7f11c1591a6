//! The figures of receiving: a source and its reader for each worker.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use baler_analysis::{Progress, SourceReport, SourceWatch};
use baler_common::transport::{LaneLag, ReaderStats};
use baler_connector_file::quarantine::NotKept;

use super::exposition::{Exposition, every_reason};
use super::metric;
use super::observable::{Check, Observable};
use baler_analysis::filters::Condition;

/// An output that takes nothing for this long is stalled.
const STALLED_AFTER: Duration = Duration::from_secs(5);

/// A worker that receives.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) name: String,
    pub(super) watch: SourceWatch,
}

impl Observable for Worker {
    fn expose(&self, exposition: &mut Exposition, _: Instant) {
        source(&self.name, &self.watch.report(), exposition);
    }

    fn lag(&self) -> Vec<LaneLag> {
        self.watch.report().reader.lag
    }

    fn chunks_left(&self) -> u64 {
        self.watch.report().in_work as u64
    }

    fn checks(&self, _: Duration, _: Instant) -> Vec<Check> {
        let report = self.watch.report();
        let mut check = reader_check(&self.name, &report.reader);
        if let Some(lanes) = report.assigned {
            check = check.with("lanes", lanes);
        }
        vec![check]
    }
}

/// Reports whether the output of records is stalled.
impl Observable for Progress {
    fn expose(&self, _: &mut Exposition, _: Instant) {}

    fn checks(&self, _: Duration, _: Instant) -> Vec<Check> {
        let stalled = self.stalled();
        let is_stalled = stalled >= STALLED_AFTER;
        let check = Check::new("output", !is_stalled)
            .with("state", if is_stalled { "stalled" } else { "ok" })
            .with("waiting_chunks", self.waiting());
        if !is_stalled {
            return vec![check];
        }
        vec![check.with("stalled_seconds", stalled.as_secs())]
    }
}

/// Counts the records that a filter cannot judge.
impl Observable for Condition {
    fn expose(&self, exposition: &mut Exposition, _: Instant) {
        for ((field, type_name), kind) in &self.undecided().kinds {
            let labels = [field.as_str(), *type_name];
            exposition.set(&metric::RECORDS_UNDECIDED, &labels, kind.records);
        }
    }

    fn checks(&self, _: Duration, _: Instant) -> Vec<Check> {
        Vec::new()
    }
}

/// Checks whether a reader reaches its medium, as far as it knows.
pub(super) fn reader_check(worker: &str, stats: &ReaderStats) -> Check {
    let state = match stats.connected {
        Some(true) => "connected",
        Some(false) => "disconnected",
        None => "unknown",
    };
    Check::new("reader", stats.connected != Some(false))
        .with("worker", worker)
        .with("state", state)
}

/// Adds the figures of a reader.
pub(super) fn reader(worker: &str, stats: &ReaderStats, exposition: &mut Exposition) {
    if let Some(connected) = stats.connected {
        exposition.set(&metric::READER_CONNECTED, &[worker], connected);
    }
    exposition.set(&metric::READER_RECONNECTS, &[worker], stats.reconnects);
    exposition.set(&metric::READER_THROTTLED, &[worker], stats.throttled);
    exposition.set(&metric::READER_REBALANCES, &[worker], stats.rebalances);
    exposition.set(&metric::READER_REMOVALS, &[worker], stats.removals);
    exposition.set(&metric::CHUNKS_REMOVED, &[worker], stats.removed);
    for (event, count) in &stats.counts {
        exposition.set(&metric::READER_EVENTS, &[worker, event], *count);
    }
    for lag in &stats.lag {
        exposition.set(&metric::LANE_LAG, &[worker, &lag.lane], lag.chunks);
    }
}

/// Adds the counts of poison messages that were not kept.
pub(super) fn not_kept(worker: &str, counts: &BTreeMap<NotKept, u64>, exposition: &mut Exposition) {
    for why in NotKept::ALL {
        let count = counts.get(&why).copied().unwrap_or_default();
        exposition.set(&metric::POISON_NOT_KEPT, &[worker, why.name()], count);
    }
}

/// Adds the figures of a source.
fn source(worker: &str, report: &SourceReport, exposition: &mut Exposition) {
    let one = &[worker];
    exposition.set(&metric::CHUNKS_RECEIVED, one, report.chunks);
    exposition.set(&metric::RECORDS_RECEIVED, one, report.records);
    exposition.set(&metric::RECEIVED_BYTES, one, report.bytes);
    exposition.set(&metric::CHUNKS_OUTSIDE_TIME, one, report.outside_time);
    exposition.set(&metric::CHUNKS_ACKNOWLEDGED, one, report.acknowledged);
    exposition.set(&metric::CHUNKS_GIVEN_BACK, one, report.given_back);
    exposition.set(&metric::CHUNKS_QUARANTINED, one, report.quarantined);
    not_kept(worker, &report.not_kept(), exposition);
    exposition.set(&metric::CHUNKS_REDELIVERED, one, report.redelivered);
    exposition.set(&metric::CHUNKS_DUPLICATE, one, report.duplicates);
    let shared = report.duplicates_across_readers;
    exposition.set(&metric::CHUNKS_SHARED, one, shared);
    exposition.set(&metric::CHUNKS_TWICE, one, report.processed_twice);
    exposition.set(&metric::CHUNKS_CONFLICTING, one, report.conflicts);
    exposition.set(&metric::CHUNKS_UNVERIFIABLE, one, report.unverifiable);
    exposition.set(&metric::CHUNKS_IN_WORK, one, report.in_work);
    for (explained, text) in [(false, "false"), (true, "true")] {
        let gaps = report.gaps.iter().filter(|gap| gap.explained == explained);
        // The sequence numbers at both ends of a gap come from the producer.
        let missing = gaps.fold(0, |sum: u64, gap| sum.saturating_add(gap.chunks));
        exposition.set(&metric::CHUNKS_MISSING, &[worker, text], missing);
    }
    exposition.set(&metric::SETTLEMENTS_STALE, one, report.stale);
    exposition.set(&metric::READER_ERRORS, one, report.transport_errors);
    reader(worker, &report.reader, exposition);
    if let Some(lanes) = report.assigned {
        exposition.set(&metric::LANES_ASSIGNED, one, lanes);
    }
    exposition.set(&metric::PRODUCER_LANES, one, report.lanes);
    exposition.set(&metric::PRODUCER_LANES_ENDED, one, report.complete_lanes);
    for (reason, records) in every_reason(&report.producer_losses) {
        exposition.set(&metric::PRODUCER_LOSSES, &[worker, &reason], records);
    }
}
