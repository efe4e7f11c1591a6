//! What `receive` did, as JSON and as text.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use baler_analysis::filters::{Counts, Taken, Times};
use baler_analysis::workers::GroupReport;
use serde::Serialize;

pub(super) use crate::commands::relay::EndedBy;
use crate::output;
use crate::output::figures::{OperationFigures, by_reason, operations_table};

/// Handles to what the stages count.
#[derive(Debug)]
pub(super) struct Figures {
    /// What the output has.
    pub(super) written: Counts,
    pub(super) times: Option<Times>,
    pub(super) taken: Taken,
}

/// What `receive` did. The names are part of the program's interface.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// Records that the output has.
    records: u64,
    /// Records in all chunks, before any was selected: `records`, `records_filtered` and
    /// `records_given_back` together.
    records_received: u64,
    /// Records that `--type`, `--since` or `--until` left out.
    records_filtered: u64,
    /// Records that were selected and not written: their chunks were given back.
    records_given_back: u64,
    /// Chunks decoded: `acknowledged` and `given_back` together, but for those given back because
    /// they could not be put into quarantine.
    chunks: u64,
    bytes: u64,
    acknowledged: u64,
    given_back: u64,
    quarantined: u64,
    redelivered: u64,
    duplicates_within_reader: u64,
    duplicates_across_readers: u64,
    /// Those of the duplicates across readers that were processed by two.
    processed_twice: u64,
    /// Chunks with the identity of a settled chunk and another checksum; they are in quarantine.
    conflicts: u64,
    unverifiable: u64,
    stale: u64,
    transport_errors: u64,
    rebalances: u64,
    reconnects: u64,
    /// Chunks written and not yet settled; absent where the medium does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    lag_chunks: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    lag_by_lane: BTreeMap<Box<str>, u64>,
    lanes: usize,
    complete_lanes: usize,
    gaps: Vec<GapFigures>,
    producer_losses: BTreeMap<String, u64>,
    types: BTreeMap<Box<str>, u64>,
    workers: Vec<WorkerFigures>,
    ended_by: EndedBy,
    #[serde(skip_serializing_if = "Option::is_none")]
    listened_on: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operations: Option<Vec<OperationFigures>>,
}

/// What one worker did.
#[derive(Debug, Serialize)]
struct WorkerFigures {
    chunks: u64,
    records_received: u64,
    acknowledged: u64,
    lanes: usize,
}

/// Chunks that never came.
#[derive(Debug, Serialize)]
struct GapFigures {
    producer: String,
    epoch: String,
    lane: u32,
    first_sequence: u64,
    chunks: u64,
    /// Whether the producer said that it gave them up.
    explained: bool,
}

impl Summary {
    /// Collects the figures.
    pub(super) fn new(
        group: &GroupReport,
        figures: &Figures,
        ended_by: EndedBy,
        listened_on: Option<SocketAddr>,
    ) -> Self {
        let report = &group.total;
        let gaps = report.gaps.iter().map(|gap| GapFigures {
            producer: gap.lane.producer.to_string(),
            epoch: gap.lane.epoch.to_string(),
            lane: gap.lane.lane,
            first_sequence: gap.first_sequence,
            chunks: gap.chunks,
            explained: gap.explained,
        });
        let lag = report.reader.lag.iter();
        let lag = lag.map(|lane| (lane.lane.clone(), lane.chunks));
        let workers = group.readers.iter().map(|reader| WorkerFigures {
            chunks: reader.chunks,
            records_received: reader.records,
            acknowledged: reader.acknowledged,
            lanes: reader.lanes,
        });
        let types = figures.written.by_type().into_iter();
        let (written, selected) = (figures.written.records(), figures.taken.offered());
        Self {
            records: written,
            records_received: report.records,
            records_filtered: report.records.saturating_sub(selected),
            records_given_back: selected.saturating_sub(written),
            chunks: report.chunks,
            bytes: report.bytes,
            acknowledged: report.acknowledged,
            given_back: report.given_back,
            quarantined: report.quarantined,
            redelivered: report.redelivered,
            duplicates_within_reader: report.duplicates,
            duplicates_across_readers: report.duplicates_across_readers,
            processed_twice: report.processed_twice,
            conflicts: report.conflicts,
            unverifiable: report.unverifiable,
            stale: report.stale,
            transport_errors: report.transport_errors,
            rebalances: report.reader.rebalances,
            reconnects: report.reader.reconnects,
            lag_chunks: report.reader.total_lag(),
            lag_by_lane: lag.collect(),
            lanes: report.lanes,
            complete_lanes: report.complete_lanes,
            gaps: gaps.collect(),
            producer_losses: by_reason(&report.producer_losses),
            types: types.map(|it| (it.type_name, it.records)).collect(),
            workers: workers.collect(),
            ended_by,
            listened_on,
            operations: figures.times.as_ref().map(OperationFigures::all),
        }
    }

    /// The summary for people.
    pub(super) fn text(&self) -> String {
        let number = output::number;
        let mut records = format!(
            "{} written of {} received",
            number(self.records),
            number(self.records_received)
        );
        for (count, became) in [
            (self.records_filtered, "filtered out"),
            (self.records_given_back, "given back"),
        ] {
            if count > 0 {
                records.push_str(&format!(", {} {became}", number(count)));
            }
        }
        let mut rows = vec![
            ("records", records),
            (
                "chunks",
                format!(
                    "{}, {} ({} records and {} bytes a chunk)",
                    number(self.chunks),
                    output::bytes(self.bytes),
                    output::decimal(self.records_received, self.chunks),
                    output::decimal(self.bytes, self.chunks),
                ),
            ),
        ];
        let missing = self.gaps.iter().filter(|gap| !gap.explained);
        let missing = missing.fold(0, |sum: u64, gap| sum.saturating_add(gap.chunks));
        let lost = self.producer_losses.values().sum();
        for (name, count) in [
            ("chunks given back", self.given_back),
            ("quarantined", self.quarantined),
            ("redelivered", self.redelivered),
            ("duplicates", self.duplicates_within_reader),
            ("duplicates across readers", self.duplicates_across_readers),
            ("conflicting copies", self.conflicts),
            ("missing chunks", missing),
            ("lost by producers", lost),
            ("medium's errors", self.transport_errors),
            ("rebalances", self.rebalances),
            ("reconnects", self.reconnects),
            ("lag in chunks", self.lag_chunks.unwrap_or(0)),
        ] {
            if count > 0 {
                rows.push((name, number(count)));
            }
        }
        for (reason, count) in &self.producer_losses {
            rows.push(("  of these", format!("{} {reason}", number(*count))));
        }
        if self.workers.len() > 1 {
            let chunks = self.workers.iter().map(|it| number(it.chunks));
            let chunks = chunks.collect::<Vec<_>>().join(" + ");
            rows.push(("workers", format!("{chunks} chunks")));
        }
        let mut text = output::two_columns(&rows);
        if !self.types.is_empty() {
            let types = self.types.iter();
            text.push('\n');
            text.push_str(&output::table(
                &["type", "records"],
                &[1],
                types.map(|(name, count)| vec![name.to_string(), number(*count)]),
            ));
        }
        if let Some(operations) = &self.operations {
            text.push('\n');
            text.push_str(&operations_table(operations));
        }
        text
    }
}
