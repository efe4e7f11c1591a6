//! What is known of a case after its repetitions.

use baler_rig::report::{TextTable, short};
use baler_rig::statistics::{Summary, to_f64};
use serde::Serialize;

use super::args::Case;

/// One repetition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) records: u64,
    pub(super) chunks: u64,
    pub(super) seconds: f64,
    /// CPU time of all consumers.
    pub(super) consumers_cpu: f64,
    /// How many cores the broker and the whole machine kept busy.
    pub(super) broker_cores: f64,
    pub(super) machine_cores: f64,
    /// How many consumers had anything.
    pub(super) busy: usize,
}

/// What is known of a case. The names are those in JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which broker.
    pub broker: &'static str,
    /// How many consumers, each a process.
    pub consumers: usize,
    /// How many partitions the topic has; 1 for a queue.
    pub partitions: u16,
    /// How many records a chunk has.
    pub chunk_records: usize,
    /// How many repetitions there are.
    pub repetitions: usize,
    /// Records a second of all consumers, from the first one's first chunk to the last one's last.
    pub records_per_second: Option<Summary>,
    /// Messages a second: the median.
    pub messages_per_second: Option<f64>,
    /// CPU time of all consumers, in seconds a million records: the median.
    pub cpu_seconds_per_million: Option<f64>,
    /// How many cores all consumers kept busy: the median.
    pub consumers_cores: Option<f64>,
    /// How many cores the broker kept busy: the median.
    pub broker_cores: Option<f64>,
    /// How many cores everything on the machine kept busy: the median.
    pub machine_cores: Option<f64>,
    /// How many consumers had any chunk: the least.
    pub busy_consumers: usize,
    /// Whether every record arrived once, by value.
    pub verified: bool,
    /// What was wrong, if something was.
    pub failure: Option<String>,
}

impl Row {
    pub(super) fn new(case: Case, samples: &[Sample], failure: Option<String>) -> Self {
        let median = |figure: fn(&Sample) -> f64| {
            Summary::of(samples.iter().map(figure)).map(|summary| summary.median)
        };
        Self {
            broker: case.medium.name(),
            consumers: case.consumers,
            partitions: case.partitions,
            chunk_records: case.chunk_records,
            repetitions: samples.len(),
            records_per_second: Summary::of(
                samples.iter().map(|it| to_f64(it.records) / it.seconds),
            ),
            messages_per_second: median(|it| to_f64(it.chunks) / it.seconds),
            cpu_seconds_per_million: median(|it| it.consumers_cpu / to_f64(it.records) * 1e6),
            consumers_cores: median(|it| it.consumers_cpu / it.seconds),
            broker_cores: median(|it| it.broker_cores),
            machine_cores: median(|it| it.machine_cores),
            busy_consumers: samples.iter().map(|it| it.busy).min().unwrap_or(0),
            verified: failure.is_none() && !samples.is_empty(),
            failure,
        }
    }
}

/// The rows, and below them what was wrong.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = TextTable::new(&[
        ("broker", true),
        ("chunk", false),
        ("parts", false),
        ("cons", false),
        ("busy", false),
        ("rec/s", false),
        ("min", false),
        ("max", false),
        ("msg/s", false),
        ("CPU s/M", false),
        ("cores", false),
        ("broker", false),
        ("all", false),
        ("ok", true),
    ]);
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
    for row in rows {
        let rate = row.records_per_second;
        table.push(vec![
            row.broker.to_owned(),
            row.chunk_records.to_string(),
            row.partitions.to_string(),
            row.consumers.to_string(),
            row.busy_consumers.to_string(),
            number(rate.map(|rate| rate.median)),
            number(rate.map(|rate| rate.min)),
            number(rate.map(|rate| rate.max)),
            number(row.messages_per_second),
            number(row.cpu_seconds_per_million),
            number(row.consumers_cores),
            number(row.broker_cores),
            number(row.machine_cores),
            if row.verified { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    let mut text = table.render();
    for row in rows {
        if let Some(failure) = &row.failure {
            let Row {
                broker,
                consumers,
                partitions,
                ..
            } = row;
            text.push_str(&format!(
                "\n{broker}, {partitions} partitions, {consumers} consumers: {failure}\n"
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::Medium;

    #[test]
    fn figures_are_those_of_all_consumers_together() {
        let case = Case {
            medium: Medium::Amqp,
            consumers: 2,
            partitions: 1,
            chunk_records: 1_024,
        };
        let sample = Sample {
            records: 1_024_000,
            chunks: 1_000,
            seconds: 0.5,
            consumers_cpu: 0.4,
            broker_cores: 1.0,
            machine_cores: 2.0,
            busy: 2,
        };
        let row = Row::new(case, &[sample], None);
        assert_eq!(row.messages_per_second, Some(2_000.0));
        assert_eq!(row.broker_cores, Some(1.0));
        assert!(row.verified && table(&[row]).lines().all(|line| line.len() <= 100));
        assert!(!Row::new(case, &[], None).verified);
    }
}
