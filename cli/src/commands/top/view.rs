//! What two looks at a process say, in the order in which it is shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::scrape::Snapshot;

/// A counter that is shown with its rate.
#[derive(Debug)]
pub(super) struct Counted {
    /// The name in JSON.
    pub(super) name: &'static str,
    /// The name on the screen.
    pub(super) title: &'static str,
    pub(super) metric: &'static str,
    pub(super) unit: Unit,
    /// Whether it is shown while it is 0.
    pub(super) always: bool,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Number,
    Seconds,
}

const fn counted(
    name: &'static str,
    title: &'static str,
    metric: &'static str,
    unit: Unit,
    always: bool,
) -> Counted {
    Counted {
        name,
        title,
        metric,
        unit,
        always,
    }
}

/// The counters that are shown.
#[rustfmt::skip]
pub(super) const COUNTED: &[Counted] = &[
    counted("records_emitted", "records emitted", "baler_records_emitted_total", Unit::Number, true),
    counted("records_delivered", "records delivered", "baler_records_delivered_total", Unit::Number, true),
    counted("records_spooled", "records spooled", "baler_records_spooled_total", Unit::Number, false),
    counted("records_received", "records received", "baler_records_received_total", Unit::Number, true),
    counted("chunks_confirmed", "chunks confirmed", "baler_chunks_confirmed_total", Unit::Number, true),
    counted("chunks_received", "chunks received", "baler_chunks_received_total", Unit::Number, true),
    counted("row_bytes", "bytes before encoding", "baler_row_bytes_total", Unit::Bytes, true),
    counted("confirmed_bytes", "bytes confirmed", "baler_confirmed_bytes_total", Unit::Bytes, true),
    counted("received_bytes", "bytes received", "baler_received_bytes_total", Unit::Bytes, true),
    counted("replayed_chunks", "chunks replayed", "baler_spool_replayed_chunks_total", Unit::Number, false),
    counted("retries", "retries", "baler_chunk_retries_total", Unit::Number, false),
    counted("writer_failures", "writer's failures", "baler_writer_failures_total", Unit::Number, false),
    counted("redelivered", "redelivered", "baler_chunks_redelivered_total", Unit::Number, false),
    counted("duplicates", "duplicates", "baler_chunks_duplicate_total", Unit::Number, false),
    counted("quarantined", "quarantined", "baler_chunks_quarantined_total", Unit::Number, false),
    counted("given_back", "given back", "baler_chunks_given_back_total", Unit::Number, false),
    counted("rebalances", "rebalances", "baler_reader_rebalances_total", Unit::Number, false),
    counted("reader_errors", "reader's errors", "baler_reader_errors_total", Unit::Number, false),
    counted("cpu_seconds", "CPU", "process_cpu_seconds_total", Unit::Seconds, true),
];

/// Metrics whose value of now is shown, with their names.
#[rustfmt::skip]
pub(super) const NOW: &[(&str, &str, &str, Unit)] = &[
    ("oldest_unconfirmed_seconds", "oldest unconfirmed", "baler_oldest_unconfirmed_seconds", Unit::Seconds),
    ("chunks_in_flight", "chunks in flight", "baler_chunks_in_flight", Unit::Number),
    ("in_flight_bytes", "bytes in flight", "baler_in_flight_bytes", Unit::Bytes),
    ("chunks_unconfirmed", "chunks unconfirmed", "baler_chunks_unconfirmed", Unit::Number),
    ("chunk_records", "records a chunk", "baler_chunk_records", Unit::Number),
    ("chunk_wait_seconds", "wait time", "baler_chunk_wait_seconds", Unit::Seconds),
    ("records_queued", "records queued", "baler_records_queued", Unit::Number),
    ("queue_bytes", "queues", "baler_queue_bytes", Unit::Bytes),
    ("spool_waiting_chunks", "chunks in the spool", "baler_spool_waiting_chunks", Unit::Number),
    ("spool_waiting_bytes", "bytes in the spool", "baler_spool_waiting_bytes", Unit::Bytes),
    ("lag_chunks", "lag in chunks", "baler_lag_chunks", Unit::Number),
    ("chunks_in_work", "chunks in work", "baler_chunks_in_work", Unit::Number),
    ("chunks_missing", "chunks missing", "baler_chunks_missing", Unit::Number),
    ("resident_bytes", "resident memory", "process_resident_memory_bytes", Unit::Bytes),
    ("open_fds", "open files", "process_open_fds", Unit::Number),
];

/// What two looks at a process say. The names are part of the program's interface.
#[derive(Debug, Serialize)]
pub(super) struct View {
    pub(super) address: String,
    pub(super) command: String,
    pub(super) version: String,
    /// Role and endpoint.
    pub(super) endpoints: Vec<[String; 2]>,
    /// `open`, `closed`, `failed`, `blocked`; nothing where nothing is sent.
    pub(super) writer: Option<String>,
    /// Whether each reader reaches its medium, by worker, where it knows.
    pub(super) readers: BTreeMap<String, bool>,
    /// Between the two looks; nothing after a restart.
    pub(super) interval_seconds: Option<f64>,
    pub(super) counters: BTreeMap<&'static str, Rate>,
    pub(super) now: BTreeMap<&'static str, f64>,
    /// Records lost, by reason; those that producers told of begin with `producer:`.
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

/// How far a lane is behind, as the worker says that is furthest behind in it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Lane {
    pub(super) worker: String,
    pub(super) lane: String,
    pub(super) lag_chunks: f64,
}

impl View {
    /// What a look says, with rates since an earlier one, if there was one in the same life of the
    /// process.
    pub(super) fn new(address: &str, before: Option<&Snapshot>, now: &Snapshot) -> Self {
        let started = |snapshot: &Snapshot| snapshot.sum("process_start_time_seconds");
        let before = before.filter(|before| started(before) == started(now));
        let seconds = before.map(|before| now.taken.duration_since(before.taken).as_secs_f64());
        let rate = |total: f64, earlier: Option<f64>| Rate {
            total,
            // A counter that went back is another process's.
            per_second: seconds
                .filter(|seconds| *seconds > 0.0 && total >= earlier.unwrap_or(0.0))
                .map(|seconds| (total - earlier.unwrap_or(0.0)) / seconds),
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
        let build = now.labels("baler_build_info", ["command", "version"]);
        let [command, version] = build.into_iter().next().unwrap_or_default();
        let lanes = now.pairs("baler_lane_lag_chunks", ["worker", "lane"]);
        let lanes = lanes.into_iter().map(|([worker, lane], lag_chunks)| Lane {
            worker,
            lane,
            lag_chunks,
        });
        let mut lanes: Vec<_> = lanes.collect();
        lanes.sort_by(|a, b| b.lag_chunks.total_cmp(&a.lag_chunks));
        // Of a queue that several workers tell of, the largest figure counts.
        let mut seen = BTreeSet::new();
        lanes.retain(|lane| seen.insert(lane.lane.clone()));
        Self {
            address: address.to_owned(),
            command,
            version,
            endpoints: now.labels("baler_endpoint_info", ["role", "endpoint"]),
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
                .filter_map(|(name, _, metric, _)| Some((*name, now.sum(metric)?)))
                .collect(),
            dropped,
            closed_by: now.by("baler_chunks_closed_total", "trigger"),
            lanes,
        }
    }

    /// How the connections are, in a few words.
    pub(super) fn connections(&self) -> String {
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

    /// Whether something needs a look.
    pub(super) fn is_troubled(&self) -> bool {
        self.writer.as_deref().is_some_and(|state| state != "open")
            || self.readers.values().any(|connected| !connected)
    }

    /// The counters that are shown: those of use, and those that counted something.
    pub(super) fn shown(&self) -> impl Iterator<Item = (&'static Counted, Rate)> {
        COUNTED.iter().filter_map(|it| {
            let rate = *self.counters.get(it.name)?;
            (it.always || rate.total > 0.0).then_some((it, rate))
        })
    }
}

fn writer(now: &Snapshot) -> Option<String> {
    if now.sum("baler_writer_blocked").unwrap_or(0.0) > 0.0 {
        return Some("blocked".to_owned());
    }
    let states = now.labels("baler_writer_state", ["state"]);
    states.into_iter().next().map(|[state]| state)
}
