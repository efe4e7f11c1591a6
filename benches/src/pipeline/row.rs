//! What is known of a case after its repetitions.

use baler_common::transport::ContainerKind;
use baler_rig::cpu::Cost;
use baler_rig::report::{TextTable, short};
use baler_rig::statistics::{Summary, to_f64};
use serde::{Serialize, Serializer};

use super::case::Case;

/// One repetition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) cost: Cost,
    /// Bytes of all chunks.
    pub(super) chunk_bytes: usize,
}

/// What is known of a case. The names are those in JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which part of the way.
    pub name: &'static str,
    /// How many records a chunk has.
    pub chunk_records: usize,
    /// Which container.
    #[serde(serialize_with = "container_name")]
    pub container: ContainerKind,
    /// How chunks are compressed, with the level.
    pub compression: String,
    /// How many threads emit.
    pub threads: usize,
    /// For `file`: when it is forced to the disk.
    pub sync: Option<&'static str>,
    /// How many records each repetition has.
    pub records: u64,
    /// How many repetitions there are.
    pub repetitions: usize,
    /// Records a second, from the first one's beginning to the last one's end.
    pub records_per_second: Option<Summary>,
    /// CPU time of the whole process, in seconds a million records: the median.
    pub cpu_seconds_per_million: Option<f64>,
    /// Bytes of chunks a record.
    pub bytes_per_record: Option<f64>,
    /// Whether every repetition was complete and right.
    pub verified: bool,
    /// What was wrong, if something was.
    pub failure: Option<String>,
}

fn container_name<S: Serializer>(kind: &ContainerKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

impl Row {
    /// What these repetitions say, or why there are none.
    pub(super) fn new(
        case: &Case,
        records: u64,
        samples: &[Sample],
        failure: Option<String>,
    ) -> Self {
        let count = to_f64(records);
        let rates = samples
            .iter()
            .map(|sample| count / sample.cost.wall.as_secs_f64());
        let cpu = samples
            .iter()
            .map(|sample| sample.cost.cpu.as_secs_f64() / count * 1e6);
        let bytes = samples.iter().map(|sample| {
            let bytes = u64::try_from(sample.chunk_bytes).unwrap_or(u64::MAX);
            to_f64(bytes) / count
        });
        Self {
            name: case.part.name(),
            chunk_records: case.chunk_records,
            container: case.encoding.container,
            compression: case.encoding.compression.to_string(),
            threads: case.threads,
            sync: case.sync.map(super::FileSync::name),
            records,
            repetitions: samples.len(),
            records_per_second: Summary::of(rates),
            cpu_seconds_per_million: Summary::of(cpu).map(|summary| summary.median),
            bytes_per_record: Summary::of(bytes).map(|summary| summary.median),
            verified: failure.is_none() && !samples.is_empty(),
            failure,
        }
    }
}

/// The rows within 100 columns, and below them what was wrong.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = TextTable::new(&[
        ("part", true),
        ("chunk", false),
        ("container", true),
        ("compr.", true),
        ("thr", false),
        ("sync", true),
        ("records/s", false),
        ("min", false),
        ("max", false),
        ("CPU s/M", false),
        ("B/record", false),
        ("ok", true),
    ]);
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
    for row in rows {
        let rate = row.records_per_second;
        table.push(vec![
            row.name.to_owned(),
            row.chunk_records.to_string(),
            row.container.name().to_owned(),
            row.compression.clone(),
            row.threads.to_string(),
            row.sync.unwrap_or("").to_owned(),
            number(rate.map(|rate| rate.median)),
            number(rate.map(|rate| rate.min)),
            number(rate.map(|rate| rate.max)),
            number(row.cpu_seconds_per_million),
            number(row.bytes_per_record),
            if row.verified { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    let mut text = table.render();
    for row in rows {
        if let Some(failure) = &row.failure {
            let Row {
                name,
                chunk_records,
                container,
                compression,
                ..
            } = row;
            text.push_str(&format!(
                "\n{name}, {chunk_records} records a chunk, {container}, {compression}: {failure}\n"
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser as _;

    use super::*;
    use crate::pipeline::Args;

    fn case() -> Case {
        Case::all(&Args::parse_from(["pipeline", "--only", "file"])).swap_remove(0)
    }

    fn sample(millis: u64) -> Sample {
        let cost = Cost {
            wall: Duration::from_millis(millis),
            cpu: Duration::from_millis(2 * millis),
        };
        Sample {
            cost,
            chunk_bytes: 20_000,
        }
    }

    #[test]
    fn figures_are_those_of_the_median_repetition() {
        let row = Row::new(&case(), 1_000, &[sample(30), sample(10), sample(20)], None);
        let rate = row.records_per_second.unwrap();
        assert_eq!((rate.median, rate.max), (50_000.0, 100_000.0));
        assert_eq!(row.cpu_seconds_per_million, Some(40.0));
        assert_eq!(row.bytes_per_record, Some(20.0));
        assert!(row.verified);
    }

    #[test]
    fn a_failure_is_shown_and_never_verified() {
        let failure = Some("999 records of 1000 came out".to_owned());
        let row = Row::new(&case(), 1_000, &[sample(10)], failure);
        assert!(!row.verified);
        let text = table(&[row]);
        assert!(
            text.contains("NO") && text.contains("999 records of 1000"),
            "{text}"
        );
        assert!(!Row::new(&case(), 1_000, &[], None).verified);
    }

    #[test]
    fn the_widest_row_fits_100_columns() {
        let mut row = Row::new(&case(), 1_000, &[sample(10)], None);
        row.chunk_records = 8_192;
        row.compression = "zstd:22".to_owned();
        row.threads = 128;
        row.sync = Some("chunk");
        let wide = Summary {
            median: 123e6,
            min: 123e6,
            max: 123e6,
        };
        row.records_per_second = Some(wide);
        let text = table(&[row]);
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }
}
