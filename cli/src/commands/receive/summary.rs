//! The summary of `receive`.

use std::collections::BTreeMap;

use baler_analysis::filters::{Counts, Taken, Times};
use baler_analysis::sinks::by_reason;
use baler_analysis::workers::GroupReport;
use serde_json::{Value, json};

use crate::output;
use crate::output::figures::{named_counts, not_kept, operations_table};

/// The most lanes that start in the middle in a text.
const MAX_STARTS: usize = 4;

/// Handles to the counts of the stages.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    /// The records that the output has.
    pub(super) written: Counts,
    pub(super) times: Option<Times>,
    pub(super) taken: Taken,
}

/// Returns the figures as JSON. The names are part of the program's interface.
///
/// `records_received` is the sum of `records`, `records_filtered` and `records_given_back`.
/// `chunks` is the sum of `acknowledged` and `given_back`, without chunks that could not be put
/// into quarantine.
pub(super) fn summary(group: &GroupReport, figures: &Figures, ended_by: &str) -> Value {
    let report = &group.total;
    let (written, selected) = (figures.written.records(), figures.taken.offered());
    let gaps = report.gaps.iter().map(|gap| {
        json!({
            "producer": gap.lane.producer.to_string(),
            "epoch": gap.lane.epoch.to_string(),
            "lane": gap.lane.lane,
            "first_sequence": gap.first_sequence,
            "chunks": gap.chunks,
            "explained": gap.explained,
        })
    });
    let starts = report.starts.iter().map(|first| {
        json!({
            "producer": first.producer.to_string(),
            "epoch": first.epoch.to_string(),
            "lane": first.lane,
            "first_sequence": first.sequence,
        })
    });
    let workers = group.readers.iter().map(|reader| {
        json!({
            "chunks": reader.chunks,
            "records_received": reader.records,
            "acknowledged": reader.acknowledged,
            "lanes": reader.lanes,
        })
    });
    let types = figures.written.by_type().into_iter();
    let types: BTreeMap<_, _> = types.map(|it| (it.type_name, it.records)).collect();
    let mut summary = json!({
        "records": written,
        "records_received": report.records,
        "records_filtered": report.records - selected,
        "records_given_back": selected - written,
        "chunks": report.chunks,
        "bytes": report.bytes,
        "chunks_outside_time": report.outside_time,
        "acknowledged": report.acknowledged,
        "given_back": report.given_back,
        "quarantined": report.quarantined,
        "not_kept": not_kept(&report.not_kept()),
        "removals": report.reader.removals,
        "removed": report.reader.removed,
        "redelivered": report.redelivered,
        "duplicates_within_reader": report.duplicates,
        "duplicates_across_readers": report.duplicates_across_readers,
        "processed_twice": report.processed_twice,
        "conflicts": report.conflicts,
        "unverifiable": report.unverifiable,
        "stale": report.stale,
        "transport_errors": report.transport_errors,
        "rebalances": report.reader.rebalances,
        "reconnects": report.reader.reconnects,
        "lanes": report.lanes,
        "complete_lanes": report.complete_lanes,
        "gaps": gaps.collect::<Vec<_>>(),
        "starts": starts.collect::<Vec<_>>(),
        "producer_losses": by_reason(&report.producer_losses),
        "types": types,
        "workers": workers.collect::<Vec<_>>(),
        "ended_by": ended_by,
    });
    let lag = report.reader.lag.iter();
    let lag: BTreeMap<_, _> = lag.map(|lane| (lane.lane.clone(), lane.chunks)).collect();
    if let Some(chunks) = report.reader.total_lag() {
        output::insert(&mut summary, "lag_chunks", chunks);
        output::insert(&mut summary, "lag_by_lane", json!(lag));
    }
    if !report.reader.counts.is_empty() {
        output::insert(&mut summary, "counts", named_counts(&report.reader.counts));
    }
    if let Some(times) = &figures.times {
        output::insert(&mut summary, "operations", json!(times.operations()));
    }
    summary
}

/// Formats the lanes that start in the middle, a line each. Of many, only the first ones.
fn starts_text(starts: &Value) -> Vec<String> {
    let starts = starts.as_array().map_or(&[][..], Vec::as_slice);
    let (shown, more) = starts.split_at(starts.len().min(MAX_STARTS));
    let start = |it: &Value| {
        let producer = output::text_of(it, "producer");
        let (lane, first) = (&it["lane"], &it["first_sequence"]);
        format!("lane {lane} of {producer} at sequence {first}")
    };
    let mut lines: Vec<_> = shown.iter().map(start).collect();
    if !more.is_empty() {
        lines.push(format!(
            "and {} more lanes",
            output::number(more.len() as u64)
        ));
    }
    lines
}

/// Formats the summary as text.
pub(super) fn text(mut summary: Value, figures: &Figures) -> String {
    let operations = output::take(&mut summary, "operations");
    output::take(&mut summary, "types");
    let starts = starts_text(&output::take(&mut summary, "starts"));
    output::insert(&mut summary, "starts", starts);
    let mut text = output::two_columns(&output::figures_of(&summary));
    let types = figures.written.by_type().into_iter();
    let mut types: Vec<_> = types
        .map(|it| vec![it.type_name.to_string(), output::number(it.records)])
        .collect();
    if !types.is_empty() {
        types.sort();
        text.push('\n');
        text.push_str(&output::table(&["type", "records"], &[1], types));
    }
    if let Some(operations) = operations.as_array() {
        text.push('\n');
        text.push_str(&operations_table(operations));
    }
    text
}
