//! What is known of a case after its repetitions.

use baler_rig::report::{self, Column, short, short_or_dash, yes_or_no};
use baler_rig::statistics::{Summary, to_f64};
use serde::Serialize;

use super::case::Case;
use super::measure::Sample;

/// What is known of a case. The names are those in JSON; times are CPU time, in nanoseconds a
/// record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which format.
    pub codec: &'static str,
    /// Which records.
    pub workload: String,
    /// How many records a chunk has.
    pub chunk_records: usize,
    /// How chunks are compressed, with the level.
    pub compression: String,
    /// Whether each string stands once a chunk; else once a record.
    pub string_table: bool,
    /// How many records were encoded for the size.
    pub records: u64,
    /// How many repetitions there are.
    pub repetitions: usize,
    /// Bytes of chunks a record: everything that a reader needs.
    pub bytes_per_record: Option<f64>,
    /// From records side by side to a chunk, compression included: the median.
    pub encode_ns: Option<f64>,
    /// From a chunk to what the format's decoder yields: the median.
    pub decode_ns: Option<f64>,
    /// The spread of `encode_ns`.
    pub encode: Option<Summary>,
    /// The spread of `decode_ns`.
    pub decode: Option<Summary>,
    /// As `encode_ns`, from records as an application emits them; `None` for other formats than
    /// Baler's.
    pub encode_records_ns: Option<f64>,
    /// To rows that are looked at one by one, where the decoder yields columns.
    pub decode_rows_ns: Option<f64>,
    /// Whether the decoded records' checksum is that of what was encoded.
    pub verified: bool,
    /// What was wrong, if something was.
    pub failure: Option<String>,
}

impl Row {
    /// What these repetitions say, or why there are none.
    pub(super) fn new(
        case: &Case,
        (workload, records): (&str, u64),
        bytes: Option<usize>,
        samples: &[Sample],
        failure: Option<String>,
    ) -> Self {
        let summary = |part: fn(&Sample) -> f64| Summary::of(samples.iter().map(part));
        let median = |part: fn(&Sample) -> Option<f64>| {
            Summary::of(samples.iter().filter_map(part)).map(|summary| summary.median)
        };
        let encode = summary(|sample| sample.encode_ns);
        let decode = summary(|sample| sample.decode_ns);
        let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok());
        Self {
            codec: case.codec.name(),
            workload: workload.to_owned(),
            chunk_records: case.chunk_records,
            compression: case.compression.to_string(),
            string_table: case.string_table,
            records,
            repetitions: samples.len(),
            bytes_per_record: bytes.map(|bytes| to_f64(bytes) / to_f64(records)),
            encode_ns: encode.map(|encode| encode.median),
            decode_ns: decode.map(|decode| decode.median),
            encode,
            decode,
            encode_records_ns: median(|sample| sample.encode_records_ns),
            decode_rows_ns: median(|sample| sample.decode_rows_ns),
            verified: failure.is_none() && bytes.is_some() && !samples.is_empty(),
            failure,
        }
    }
}

const COLUMNS: &[Column<Row>] = &[
    Column::text("codec", |row| row.codec.to_owned()),
    Column::text("tbl", |row| {
        if row.string_table { "on" } else { "off" }.to_owned()
    }),
    Column::number("chunk", |row| row.chunk_records.to_string()),
    Column::text("compr.", |row| row.compression.clone()),
    Column::number("B/rec", |row| {
        row.bytes_per_record
            .map_or_else(|| "-".to_owned(), bytes_of)
    }),
    Column::number("enc ns", |row| short_or_dash(row.encode_ns)),
    Column::number("min", |row| short_or_dash(row.encode.map(|it| it.min))),
    Column::number("max", |row| short_or_dash(row.encode.map(|it| it.max))),
    Column::number("recs", |row| {
        row.encode_records_ns.map_or_else(String::new, short)
    }),
    Column::number("dec ns", |row| short_or_dash(row.decode_ns)),
    Column::number("min", |row| short_or_dash(row.decode.map(|it| it.min))),
    Column::number("max", |row| short_or_dash(row.decode.map(|it| it.max))),
    Column::number("rows", |row| {
        row.decode_rows_ns.map_or_else(String::new, short)
    }),
    Column::text("ok", |row| yes_or_no(row.verified)),
];

/// The rows within 100 columns, and below them what was wrong.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text = report::table(rows, COLUMNS);
    for row in rows {
        if let Some(failure) = &row.failure {
            let Row {
                codec,
                chunk_records,
                compression,
                ..
            } = row;
            text.push_str(&format!(
                "\n{codec}, {chunk_records} records a chunk, {compression}: {failure}\n"
            ));
        }
    }
    text
}

/// Two decimals, where they tell anything.
fn bytes_of(record: f64) -> String {
    if record < 100.0 {
        format!("{record:.2}")
    } else {
        short(record)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::args::Args;
    use super::*;

    fn case() -> Case {
        Case::all(&Args::parse_from(["codec", "--only=columnar"])).swap_remove(0)
    }

    fn sample(ns: f64) -> Sample {
        Sample {
            encode_ns: ns,
            decode_ns: 2.0 * ns,
            encode_records_ns: None,
            decode_rows_ns: Some(3.0 * ns),
        }
    }

    #[test]
    fn figures_are_those_of_the_median_repetition() {
        let samples = [sample(30.0), sample(10.0), sample(20.0)];
        let row = Row::new(&case(), ("generated", 1_000), Some(20_000), &samples, None);
        assert_eq!((row.encode_ns, row.decode_ns), (Some(20.0), Some(40.0)));
        assert_eq!(row.bytes_per_record, Some(20.0));
        assert_eq!(
            (row.encode_records_ns, row.decode_rows_ns),
            (None, Some(60.0))
        );
        assert!(row.verified);
    }

    #[test]
    fn a_failure_is_shown_and_never_verified() {
        let failure = Some("other records came out".to_owned());
        let row = Row::new(&case(), ("generated", 10), Some(1), &[sample(1.0)], failure);
        assert!(!row.verified);
        let text = table(&[row]);
        assert!(
            text.contains("NO") && text.contains("other records"),
            "{text}"
        );
        assert!(!Row::new(&case(), ("generated", 10), Some(1), &[], None).verified);
    }

    #[test]
    fn the_widest_row_fits_100_columns() {
        let mut sample = sample(123_000.0);
        sample.encode_records_ns = Some(123_000.0);
        let mut row = Row::new(&case(), ("generated", 1), Some(99_999), &[sample], None);
        row.chunk_records = 65_536;
        row.compression = "zstd:22".to_owned();
        let text = table(&[row]);
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }
}
