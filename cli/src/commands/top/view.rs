//! The view of a process from two scrapes, in the order in which it is shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::scrape::Snapshot;
use crate::output;

/// A figure that is shown.
#[derive(Debug)]
pub(super) struct Figure {
    /// The name in JSON.
    pub(super) name: &'static str,
    /// The name on the screen.
    pub(super) title: &'static str,
    pub(super) metric: &'static str,
    pub(super) unit: Unit,
    /// Whether it is shown while it is 0.
    pub(super) always: bool,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Number,
    Seconds,
}

const fn figure(
    name: &'static str,
    title: &'static str,
    metric: &'static str,
    unit: Unit,
    always: bool,
) -> Figure {
    Figure {
        name,
        title,
        metric,
        unit,
        always,
    }
}

/// The counters, which are shown with their rates.
#[rustfmt::skip]
pub(super) const COUNTED: &[Figure] = &[
    figure("records_emitted", "records emitted", "baler_records_emitted_total", Unit::Number, true),
    figure("records_delivered", "records delivered", "baler_records_delivered_total", Unit::Number, true),
    figure("records_spooled", "records spooled", "baler_records_spooled_total", Unit::Number, false),
    figure("records_received", "records received", "baler_records_received_total", Unit::Number, true),
    figure("chunks_confirmed", "chunks confirmed", "baler_chunks_confirmed_total", Unit::Number, true),
    figure("chunks_received", "chunks received", "baler_chunks_received_total", Unit::Number, true),
    figure("row_bytes", "bytes before encoding", "baler_row_bytes_total", Unit::Bytes, true),
    figure("confirmed_bytes", "bytes confirmed", "baler_confirmed_bytes_total", Unit::Bytes, true),
    figure("received_bytes", "bytes received", "baler_received_bytes_total", Unit::Bytes, true),
    figure("replayed_chunks", "chunks replayed", "baler_spool_replayed_chunks_total", Unit::Number, false),
    figure("retries", "retries", "baler_chunk_retries_total", Unit::Number, false),
    figure("writer_failures", "writer's failures", "baler_writer_failures_total", Unit::Number, false),
    figure("redelivered", "redelivered", "baler_chunks_redelivered_total", Unit::Number, false),
    figure("duplicates", "duplicates", "baler_chunks_duplicate_total", Unit::Number, false),
    figure("quarantined", "quarantined", "baler_chunks_quarantined_total", Unit::Number, false),
    figure("given_back", "given back", "baler_chunks_given_back_total", Unit::Number, false),
    figure("rebalances", "rebalances", "baler_reader_rebalances_total", Unit::Number, false),
    figure("reader_errors", "reader's errors", "baler_reader_errors_total", Unit::Number, false),
    figure("cpu_seconds", "CPU", "process_cpu_seconds_total", Unit::Seconds, true),
];

/// The current figures, which are shown without rates.
#[rustfmt::skip]
pub(super) const NOW: &[Figure] = &[
    figure("oldest_unconfirmed_seconds", "oldest unconfirmed", "baler_oldest_unconfirmed_seconds", Unit::Seconds, true),
    figure("chunks_in_flight", "chunks in flight", "baler_chunks_in_flight", Unit::Number, true),
    figure("in_flight_bytes", "bytes in flight", "baler_in_flight_bytes", Unit::Bytes, true),
    figure("chunks_unconfirmed", "chunks unconfirmed", "baler_chunks_unconfirmed", Unit::Number, true),
    figure("chunk_records", "records a chunk", "baler_chunk_records", Unit::Number, true),
    figure("chunk_wait_seconds", "wait time", "baler_chunk_wait_seconds", Unit::Seconds, true),
    figure("records_queued", "records queued", "baler_records_queued", Unit::Number, true),
    figure("queue_bytes", "queues", "baler_queue_bytes", Unit::Bytes, true),
    figure("spool_waiting_chunks", "chunks in the spool", "baler_spool_waiting_chunks", Unit::Number, true),
    figure("spool_waiting_bytes", "bytes in the spool", "baler_spool_waiting_bytes", Unit::Bytes, true),
    figure("lag_chunks", "lag in chunks", "baler_lag_chunks", Unit::Number, true),
    figure("chunks_in_work", "chunks in work", "baler_chunks_in_work", Unit::Number, true),
    figure("chunks_missing", "chunks missing", "baler_chunks_missing", Unit::Number, true),
    figure("resident_bytes", "resident memory", "process_resident_memory_bytes", Unit::Bytes, true),
    figure("open_fds", "open files", "process_open_fds", Unit::Number, true),
];

/// The view of a process from two scrapes. The names are part of the program's interface.
#[derive(Debug, Serialize)]
pub(super) struct View {
    pub(super) address: String,
    pub(super) command: String,
    pub(super) version: String,
    /// Role and endpoint.
    pub(super) endpoints: Vec<[String; 2]>,
    /// `open`, `closed`, `failed`, `blocked`; `None` for a process that sends nothing.
    pub(super) writer: Option<String>,
    /// Whether the reader of each worker reaches its medium, if the reader knows.
    pub(super) readers: BTreeMap<String, bool>,
    /// The seconds between the two scrapes; `None` after a restart.
    pub(super) interval_seconds: Option<f64>,
    pub(super) counters: BTreeMap<&'static str, Rate>,
    pub(super) now: BTreeMap<&'static str, f64>,
    /// Records lost, by reason. Reasons that producers reported begin with `producer:`.
    pub(super) dropped: BTreeMap<String, Rate>,
    /// Chunks closed, by trigger.
    pub(super) closed_by: BTreeMap<String, f64>,
    pub(super) lanes: Vec<Lane>,
}

/// A counter and how fast it grows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Rate {
    pub(super) total: f64,
    pub(super) per_second: Option<f64>,
}

/// The lag of a lane, from the worker with the largest lag in it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Lane {
    pub(super) worker: String,
    pub(super) lane: String,
    pub(super) lag_chunks: f64,
}

impl View {
    /// Creates the view of a snapshot. It has rates if an earlier snapshot is from the same life of
    /// the process.
    pub(super) fn new(address: &str, before: Option<&Snapshot>, now: &Snapshot) -> Self {
        let started = |snapshot: &Snapshot| snapshot.sum("process_start_time_seconds");
        let before = before.filter(|before| started(before) == started(now));
        let seconds = before.map(|before| now.taken.duration_since(before.taken).as_secs_f64());
        let rate = |total: f64, earlier: Option<f64>| {
            // A new counter has counted everything since the last look.
            let more = earlier.map_or(total, |earlier| total - earlier);
            // A counter that went back belongs to another process.
            let seconds = seconds.filter(|seconds| *seconds > 0.0 && more >= 0.0);
            let per_second = seconds.map(|seconds| more / seconds);
            Rate { total, per_second }
        };
        let counters = COUNTED.iter().filter_map(|it| {
            let total = now.sum(it.metric)?;
            let earlier = before.and_then(|before| before.sum(it.metric));
            Some((it.name, rate(total, earlier)))
        });
        let mut dropped = BTreeMap::new();
        for (metric, prefix) in [
            ("baler_records_dropped_total", ""),
            ("baler_producer_records_lost_total", "producer:"),
        ] {
            let earlier = before.map(|before| before.by(metric, "reason"));
            for (reason, total) in now.by(metric, "reason") {
                let earlier = earlier.as_ref().and_then(|by| by.get(&reason).copied());
                dropped.insert(format!("{prefix}{reason}"), rate(total, earlier));
            }
        }
        dropped.retain(|_, rate| rate.total > 0.0);
        let build = now.set("baler_build_info", ["command", "version"]);
        let [command, version] = build.into_iter().next().unwrap_or_default();
        let lanes = now.series("baler_lane_lag_chunks", ["worker", "lane"]);
        let lanes = lanes.into_iter().map(|([worker, lane], lag_chunks)| Lane {
            worker,
            lane,
            lag_chunks,
        });
        let mut lanes: Vec<_> = lanes.collect();
        lanes.sort_by(|a, b| b.lag_chunks.total_cmp(&a.lag_chunks));
        // If several workers report on one queue, the largest figure counts.
        let mut seen = BTreeSet::new();
        lanes.retain(|lane| seen.insert(lane.lane.clone()));
        Self {
            address: address.to_owned(),
            command,
            version,
            endpoints: now.set("baler_endpoint_info", ["role", "endpoint"]),
            writer: writer(now),
            readers: now
                .by("baler_reader_connected", "worker")
                .into_iter()
                .map(|(worker, value)| (worker, value > 0.0))
                .collect(),
            interval_seconds: seconds,
            counters: counters.collect(),
            now: NOW
                .iter()
                .filter_map(|it| Some((it.name, now.sum(it.metric)?)))
                .collect(),
            dropped,
            closed_by: now.by("baler_chunks_closed_total", "trigger"),
            lanes,
        }
    }

    /// Describes the connections in a few words.
    fn connections(&self) -> String {
        let mut words = Vec::new();
        if let Some(writer) = &self.writer {
            words.push(format!("writer {writer}"));
        }
        let away = self.readers.values().filter(|connected| !**connected);
        match (self.readers.len(), away.count()) {
            (0, _) => {}
            (all, 0) => words.push(format!("{all} of {all} readers connected")),
            (all, away) => words.push(format!("{away} of {all} readers disconnected")),
        }
        words.join(", ")
    }

    /// Returns the counters to show: the ones that are always shown, and the ones that counted
    /// something.
    fn shown(&self) -> impl Iterator<Item = (&'static Figure, Rate)> {
        COUNTED.iter().filter_map(|it| {
            let rate = *self.counters.get(it.name)?;
            (it.always || rate.total > 0.0).then_some((it, rate))
        })
    }

    /// Formats the view as tables. `bars` returns the text after the rate of a counter.
    pub(super) fn text(&self, bars: impl Fn(&str) -> String) -> String {
        let process = format!("{} {} at {}", self.command, self.version, self.address);
        let mut head = vec![("process", process)];
        for [role, endpoint] in &self.endpoints {
            head.push((if role == "sink" { "to" } else { "from" }, endpoint.clone()));
        }
        let connections = self.connections();
        if !connections.is_empty() {
            head.push(("connections", connections));
        }
        let mut text = output::two_columns(&head);
        let mut add = |header: &[&str], rows: Vec<Vec<String>>| {
            if !rows.is_empty() {
                text.push('\n');
                text.push_str(&output::table(header, &[1, 2], rows));
            }
        };
        let rated = |name: &str, rate: Rate, unit, bars| {
            let speed = per_second(rate, unit);
            vec![name.to_owned(), speed, total(rate.total, unit), bars]
        };
        let rates = self.shown();
        let rates = rates.map(|(it, rate)| rated(it.title, rate, it.unit, bars(it.name)));
        add(&["counter", "a second", "total", ""], rates.collect());
        let now = NOW.iter().filter_map(|it| {
            let value = total(*self.now.get(it.name)?, it.unit);
            Some(vec![it.title.to_owned(), value])
        });
        add(&["now", "value"], now.collect());
        let dropped = self.dropped.iter();
        let dropped =
            dropped.map(|(reason, rate)| rated(reason, *rate, Unit::Number, String::new()));
        add(&["dropped", "a second", "total", ""], dropped.collect());
        let lanes = self.lanes.iter().map(|lane| {
            let name = format!("{} (worker {})", lane.lane, lane.worker);
            vec![name, total(lane.lag_chunks, Unit::Number)]
        });
        add(&["lane", "lag in chunks"], lanes.collect());
        text
    }
}

fn writer(now: &Snapshot) -> Option<String> {
    let blocked = now.sum("baler_writer_blocked");
    if blocked.is_some_and(|blocked| blocked > 0.0) {
        return Some("blocked".to_owned());
    }
    let states = now.set("baler_writer_state", ["state"]);
    states.into_iter().next().map(|[state]| state)
}

/// Formats the rate of a counter; `-` if it is unknown.
fn per_second(rate: Rate, unit: Unit) -> String {
    match (rate.per_second, unit) {
        (None, _) => "-".to_owned(),
        // CPU seconds a second are a share of one core.
        (Some(value), Unit::Seconds) => format!("{:.1} %", value * 100.0),
        (Some(value), Unit::Bytes) => output::bytes(whole(value)),
        (Some(value), Unit::Number) if value > 0.0 && value < 10.0 => format!("{value:.1}"),
        (Some(value), Unit::Number) => output::number(whole(value)),
    }
}

/// Formats a value with its unit.
fn total(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => output::bytes(whole(value)),
        Unit::Number => output::number(whole(value)),
        Unit::Seconds => format!("{value:.1} s"),
    }
}

/// Returns the nearest whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and figures are not negative"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}
