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
    /// What there was none left of.
    pub limited_by: Option<Limit>,
    /// Whether every record arrived once, by value.
    pub verified: bool,
    /// What was wrong, if something was.
    pub failure: Option<String>,
}

/// What there was none left of, so that more consumers bring no more records a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Limit {
    /// The machine's cores, which consumers and broker share.
    Machine,
    /// The one core that the broker uses: RabbitMQ is started with one scheduler, and the mock
    /// cluster has one thread.
    Broker,
    /// The cores that consumers use, and there are no further partitions for further consumers.
    Partitions,
    /// The cores that consumers use, one each.
    Consumers,
    /// No core: consumers wait for answers, or for the feeding process.
    Waiting,
}

/// Of what one has at least this share, there is none left.
const ALL: f64 = 0.9;

impl Limit {
    /// What limits a case that kept so many of the machine's `cores` busy.
    fn of(row: &Row, cores: usize) -> Option<Self> {
        let all =
            |used: f64, of: usize| used >= ALL * to_f64(u64::try_from(of).unwrap_or(u64::MAX));
        let consumers = all(row.consumers_cores?, row.busy_consumers);
        Some(if all(row.machine_cores?, cores) {
            Self::Machine
        } else if all(row.broker_cores?, 1) {
            Self::Broker
        } else if consumers && row.busy_consumers < row.consumers {
            Self::Partitions
        } else if consumers {
            Self::Consumers
        } else {
            Self::Waiting
        })
    }

    /// The table's column that tells of it.
    const fn column(self) -> &'static str {
        match self {
            Self::Machine => "all",
            Self::Broker => "broker",
            Self::Partitions => "parts",
            Self::Consumers => "cons",
            Self::Waiting => "wait",
        }
    }
}

impl Row {
    /// The row of a case on a machine of so many cores.
    pub(super) fn new(
        case: Case,
        samples: &[Sample],
        failure: Option<String>,
        cores: usize,
    ) -> Self {
        let median = |figure: fn(&Sample) -> f64| {
            Summary::of(samples.iter().map(figure)).map(|summary| summary.median)
        };
        let mut row = Self {
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
            limited_by: None,
            verified: failure.is_none() && !samples.is_empty(),
            failure,
        };
        row.limited_by = Limit::of(&row, cores);
        row
    }
}

/// The rows, and below them what was wrong.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = TextTable::new(&[
        ("broker", true),
        ("chunk", false),
        ("parts", false),
        ("cons", false),
        ("rec/s", false),
        ("min", false),
        ("max", false),
        ("msg/s", false),
        ("CPU s/M", false),
        ("cores", false),
        ("broker", false),
        ("all", false),
        ("limit", true),
        ("ok", true),
    ]);
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
    for row in rows {
        let rate = row.records_per_second;
        table.push(vec![
            row.broker.to_owned(),
            row.chunk_records.to_string(),
            row.partitions.to_string(),
            match row.busy_consumers == row.consumers {
                true => row.consumers.to_string(),
                false => format!("{}/{}", row.busy_consumers, row.consumers),
            },
            number(rate.map(|rate| rate.median)),
            number(rate.map(|rate| rate.min)),
            number(rate.map(|rate| rate.max)),
            number(row.messages_per_second),
            number(row.cpu_seconds_per_million),
            number(row.consumers_cores),
            number(row.broker_cores),
            number(row.machine_cores),
            row.limited_by.map_or("-", Limit::column).to_owned(),
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
        let row = Row::new(case, &[sample], None, 2);
        assert_eq!(row.messages_per_second, Some(2_000.0));
        assert_eq!(row.broker_cores, Some(1.0));
        assert!(row.verified && table(&[row]).lines().all(|line| line.len() <= 100));
        assert!(!Row::new(case, &[], None, 2).verified);
    }

    #[test]
    fn limit_is_what_there_is_none_left_of() {
        let case = |consumers| Case {
            medium: Medium::KafkaMock,
            consumers,
            partitions: 1,
            chunk_records: 32,
        };
        let limit = |consumers, consumers_cpu, broker_cores, machine_cores| {
            let sample = Sample {
                records: 1,
                chunks: 1,
                seconds: 1.0,
                consumers_cpu,
                broker_cores,
                machine_cores,
                busy: 1,
            };
            Row::new(case(consumers), &[sample], None, 2).limited_by
        };
        assert_eq!(limit(1, 0.95, 0.95, 1.95), Some(Limit::Machine));
        assert_eq!(limit(1, 0.4, 0.95, 1.5), Some(Limit::Broker));
        assert_eq!(limit(1, 0.95, 0.4, 1.5), Some(Limit::Consumers));
        assert_eq!(limit(4, 0.95, 0.4, 1.5), Some(Limit::Partitions));
        assert_eq!(limit(4, 0.4, 0.4, 1.0), Some(Limit::Waiting));
        assert_eq!(Row::new(case(1), &[], None, 2).limited_by, None);
    }
}
