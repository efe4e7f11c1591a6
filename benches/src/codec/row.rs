//! The figures of a case after its repetitions.

use baler_rig::harness::Runs;
use baler_rig::report::{self, Column, short, short_or_dash, yes_or_no};
use baler_rig::statistics::{Distribution, to_f64};
use serde::Serialize;

use super::case::Case;
use super::measure::Sample;

/// The figures of a case. JSON uses the same names. Times are CPU time, in nanoseconds a record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The format.
    pub codec: String,
    /// The number of records in a chunk.
    pub chunk_records: usize,
    /// The compression of chunks, with the level.
    pub compression: String,
    /// The number of records that were encoded for the size.
    pub records: u64,
    /// The number of repetitions.
    pub repetitions: usize,
    /// Bytes of chunks for each record: everything that a reader needs.
    pub bytes_per_record: Option<f64>,
    /// From numbered strings and columns, or rows, to a chunk, including compression: the median,
    /// ...
    pub encode_ns: Option<f64>,
    /// ... the fastest and the slowest repetition.
    pub encode_range_ns: Option<[f64; 2]>,
    /// From a chunk to the result of the format's decoder: the median, ...
    pub decode_ns: Option<f64>,
    /// ... the fastest and the slowest repetition.
    pub decode_range_ns: Option<[f64; 2]>,
    /// From a chunk to rows with borrowed strings, if the format's decoder returns columns: the
    /// median.
    pub rows_ns: Option<f64>,
    /// Whether the decoded records equal the encoded ones.
    pub verified: bool,
    /// The reason why there are no more figures, if something failed.
    pub failure: Option<String>,
}

impl Row {
    pub(super) fn new(
        case: &Case,
        records: u64,
        bytes: Option<usize>,
        runs: &Runs<Sample>,
    ) -> Self {
        let of = |part: fn(&Sample) -> f64| Distribution::of(runs.samples.iter().map(part));
        let (encode, decode) = (of(|it| it.encode_ns), of(|it| it.decode_ns));
        let range = |it: &Distribution| Some([it.quantile(0.0)?, it.quantile(1.0)?]);
        let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok());
        Self {
            codec: case.codec.name(),
            chunk_records: case.chunk_records,
            compression: case.compression.to_string(),
            records,
            repetitions: runs.samples.len(),
            bytes_per_record: bytes.map(|bytes| to_f64(bytes) / to_f64(records)),
            encode_ns: encode.quantile(0.5),
            encode_range_ns: range(&encode),
            decode_ns: decode.quantile(0.5),
            decode_range_ns: range(&decode),
            rows_ns: Distribution::of(runs.samples.iter().filter_map(|it| it.rows_ns))
                .quantile(0.5),
            verified: runs.failure.is_none() && bytes.is_some() && !runs.samples.is_empty(),
            failure: runs.failure.as_ref().map(ToString::to_string),
        }
    }
}

const COLUMNS: &[Column<Row>] = &[
    Column::text("codec", |row| row.codec.clone()),
    Column::number("chunk", |row| row.chunk_records.to_string()),
    Column::text("compr.", |row| row.compression.clone()),
    Column::number("B/rec", |row| {
        row.bytes_per_record
            .map_or_else(|| "-".to_owned(), bytes_of)
    }),
    Column::number("enc ns", |row| short_or_dash(row.encode_ns)),
    Column::number("min", |row| {
        short_or_dash(row.encode_range_ns.map(|[min, _]| min))
    }),
    Column::number("max", |row| {
        short_or_dash(row.encode_range_ns.map(|[_, max]| max))
    }),
    Column::number("dec ns", |row| short_or_dash(row.decode_ns)),
    Column::number("min", |row| {
        short_or_dash(row.decode_range_ns.map(|[min, _]| min))
    }),
    Column::number("max", |row| {
        short_or_dash(row.decode_range_ns.map(|[_, max]| max))
    }),
    Column::number("rows ns", |row| row.rows_ns.map_or_else(String::new, short)),
    Column::text("ok", |row| yes_or_no(row.verified)),
];

/// The rows within 100 columns, and below them the failures.
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

/// Two decimals below 100.
fn bytes_of(record: f64) -> String {
    if record < 100.0 {
        format!("{record:.2}")
    } else {
        short(record)
    }
}

#[cfg(test)]
mod tests;
