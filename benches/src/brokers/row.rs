//! What is known of a case after its repetitions.

use baler_rig::report::{TextTable, short};
use baler_rig::statistics::{Summary, to_f64};
use serde::Serialize;

use super::case::{Case, Way};
use super::task::Written;

/// What is known of a case. The names are those in JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which broker.
    pub broker: String,
    /// How records got there.
    pub way: &'static str,
    /// How many records a message has.
    pub chunk_records: u32,
    /// The kind of queue, for AMQP.
    pub queue_type: Option<&'static str>,
    /// How many records each repetition has.
    pub records: u64,
    /// How many repetitions there are.
    pub repetitions: usize,
    /// Records a second, from the first `emit` to the last confirmation.
    pub records_per_second: Option<Summary>,
    /// User and system time of the writing process, in seconds a million records.
    pub cpu_seconds_per_million: Option<Summary>,
    /// Bytes of messages a record, without what the protocol puts around them.
    pub payload_bytes_per_record: Option<f64>,
    /// How many times the records a CPU second of the best plain way of the broker: in each round
    /// of the schedule, then median and range.
    pub records_per_cpu_second_ratio: Option<Summary>,
    /// Whether everything that was confirmed had arrived, by number in every repetition and by
    /// value in one more before.
    pub verified: bool,
    /// What was wrong, if something was.
    pub failure: Option<String>,
    #[serde(skip)]
    cpu: Vec<f64>,
    #[serde(skip)]
    is_rival: bool,
}

impl Row {
    pub(super) fn new(
        case: Case,
        broker: String,
        queue_type: Option<&'static str>,
        written: &[Written],
        records: u64,
        failure: Option<String>,
    ) -> Self {
        let per_million = |seconds: f64, count: u64| seconds / to_f64(count) * 1e6;
        let rates = written
            .iter()
            .map(|it| to_f64(it.records) / it.wall_seconds);
        let cpu = written
            .iter()
            .map(|it| per_million(it.cpu_seconds, it.records));
        let cpu: Vec<f64> = cpu.collect();
        let bytes = written
            .iter()
            .map(|it| to_f64(it.payload_bytes) / to_f64(it.records));
        Self {
            broker,
            way: case.way.name(),
            chunk_records: case.way.chunk_records(),
            queue_type,
            records,
            repetitions: written.len(),
            records_per_second: Summary::of(rates),
            cpu_seconds_per_million: Summary::of(cpu.iter().copied()),
            payload_bytes_per_record: Summary::of(bytes).map(|bytes| bytes.median),
            records_per_cpu_second_ratio: None,
            verified: failure.is_none() && !written.is_empty(),
            failure,
            cpu,
            is_rival: matches!(case.way, Way::Plain | Way::PlainThreaded),
        }
    }
}

/// Compares every row with the best plain way of its broker, round by round.
pub(super) fn compare(rows: &mut [Row]) {
    let rivals: Vec<Row> = rows.iter().filter(|row| row.is_rival).cloned().collect();
    for row in rows {
        let of_broker = rivals.iter().filter(|rival| rival.broker == row.broker);
        let median = |rival: &&Row| rival.cpu_seconds_per_million.map(|cpu| cpu.median);
        let best = of_broker
            .filter(|rival| median(rival).is_some())
            .min_by(|one, other| {
                let (one, other) = (median(one), median(other));
                one.unwrap_or(f64::MAX)
                    .total_cmp(&other.unwrap_or(f64::MAX))
            });
        if let Some(best) = best {
            let rounds = best.cpu.iter().zip(&row.cpu);
            row.records_per_cpu_second_ratio = Summary::of(rounds.map(|(rival, own)| rival / own));
        }
    }
}

/// The rows, and below them what was wrong.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = TextTable::new(&[
        ("broker", true),
        ("way", true),
        ("rec/msg", false),
        ("records/s", false),
        ("min", false),
        ("max", false),
        ("CPU s/M", false),
        ("min", false),
        ("max", false),
        ("B/record", false),
        ("ratio", false),
        ("min", false),
        ("max", false),
        ("ok", true),
    ]);
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
    for row in rows {
        let summary = |summary: Option<Summary>| {
            [
                number(summary.map(|it| it.median)),
                number(summary.map(|it| it.min)),
                number(summary.map(|it| it.max)),
            ]
        };
        let mut cells = vec![
            row.broker.clone(),
            row.way.to_owned(),
            row.chunk_records.to_string(),
        ];
        cells.extend(summary(row.records_per_second));
        cells.extend(summary(row.cpu_seconds_per_million));
        cells.push(number(row.payload_bytes_per_record));
        cells.extend(summary(row.records_per_cpu_second_ratio));
        cells.push(if row.verified { "yes" } else { "NO" }.to_owned());
        table.push(cells);
    }
    let mut text = table.render();
    for row in rows {
        if let Some(failure) = &row.failure {
            let Row {
                broker,
                way,
                chunk_records,
                ..
            } = row;
            text.push_str(&format!(
                "\n{broker}, {way}, {chunk_records} records a message: {failure}\n"
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::case::Broker;
    use super::*;

    fn row(way: Way, cpu: &[f64]) -> Row {
        let written = cpu.iter().map(|cpu_seconds| Written {
            wall_seconds: 1.0,
            cpu_seconds: *cpu_seconds,
            records: 1_000_000,
            messages: 1_000,
            all_messages: 1_101,
            payload_bytes: 20_000_000,
        });
        let case = Case {
            broker: Broker::KafkaMock,
            way,
        };
        let written: Vec<_> = written.collect();
        Row::new(
            case,
            "kafka-mock".to_owned(),
            None,
            &written,
            1_000_000,
            None,
        )
    }

    #[test]
    fn the_best_rival_is_the_measure_round_by_round() {
        let mut rows = [
            row(Way::Awaiting, &[0.1, 0.1, 0.1]),
            row(Way::PlainThreaded, &[3.0, 3.0, 3.0]),
            row(Way::Plain, &[1.0, 2.0, 1.5]),
            row(Way::Baler(1_024), &[0.1, 0.1, 0.1]),
        ];
        compare(&mut rows);
        let ratio = rows[3].records_per_cpu_second_ratio.unwrap();
        assert!((ratio.median - 15.0).abs() < 1e-9 && (ratio.max - 20.0).abs() < 1e-9);
        let own = rows[2].records_per_cpu_second_ratio.unwrap();
        assert_eq!((own.min, own.max), (1.0, 1.0));
        assert_eq!(rows[3].payload_bytes_per_record, Some(20.0));
    }

    #[test]
    fn a_failure_is_shown_and_never_verified() {
        let case = Case {
            broker: Broker::Amqp,
            way: Way::Plain,
        };
        let failure = Some("7 messages arrived, 8 were sent".to_owned());
        let row = Row::new(case, "amqp".to_owned(), Some("quorum"), &[], 8, failure);
        assert!(!row.verified);
        let text = table(&[row]);
        assert!(
            text.contains("NO") && text.contains("7 messages arrived"),
            "{text}"
        );
    }
}
