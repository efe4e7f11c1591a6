//! The cells as text: a table in the shape of the paper's table 2 and more, and lines for
//! spreadsheets.

use std::fmt::Write as _;

use super::case::Way;
use super::cell::{Cell, Interval};
use super::model::CostModel;
use super::recommend::Recommendation;
use crate::report::{TextTable, short};
use crate::statistics::widening;

/// A column: its heading, and the text of a cell in it.
type Column<'a> = (&'static str, &'a dyn Fn(&Cell) -> String);

/// The cells, what the model makes of them, and what was wrong.
pub(super) fn text(
    cells: &[Cell],
    autocorrelation: f64,
    models: &[CostModel],
    recommended: Option<&[Recommendation]>,
) -> String {
    let mut out = costs(cells);
    out.push('\n');
    out.push_str(&deliveries(cells));
    out.push('\n');
    out.push_str(&reasons(cells));
    if cells.iter().any(is_held_back) {
        line(
            &mut out,
            "held: for so much of the time the load waited for the readers, since this medium forgets \
             what they do not read in time: rec/s is what they take, and writer and broker could do \
             more.",
        );
    }
    let wider = widening(autocorrelation);
    if wider >= WORTH_TELLING {
        line(
            &mut out,
            &format!(
                "The machine was slower for a while, or faster: CPU times of runs resemble those of the \
                 runs before (autocorrelation {autocorrelation:.2}), so that their intervals are \
                 {wider:.2} times as wide as they would be otherwise."
            ),
        );
    }
    for cell in cells {
        if let Some(failure) = &cell.failure {
            line(&mut out, &format!("{}: {failure}", cell.case.label()));
        }
        if cell.lost > 0 {
            let lost = cell.lost;
            line(
                &mut out,
                &format!("{}: {lost} records were lost or altered", cell.case.label()),
            );
        }
    }
    if let Some(recommended) = recommended {
        out.push('\n');
        out.push_str(&advice(models, recommended));
    }
    out
}

/// Intervals that are wider by less than this are so by chance.
const WORTH_TELLING: f64 = 1.1;

/// A line, broken at 100 columns.
fn line(out: &mut String, text: &str) {
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > 98 {
            out.push_str("\n  ");
            width = 2;
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += length;
    }
    out.push('\n');
}

/// Columns in which cells differ, before the others.
fn settings(cells: &[Cell]) -> Vec<Column<'static>> {
    let baler: Vec<&Cell> = cells
        .iter()
        .filter(|cell| cell.case.way == Way::Baler)
        .collect();
    let all: Vec<&Cell> = cells.iter().collect();
    let mut columns: Vec<Column<'static>> = Vec::new();
    if differ(&all, |cell| cell.case.rate) {
        columns.push(("rate", &|cell: &Cell| {
            cell.case.rate.map_or_else(|| "max".to_owned(), short)
        }));
    }
    if differ(&all, |cell| cell.case.consumers) {
        columns.push(("cons", &|cell: &Cell| cell.case.consumers.to_string()));
    }
    if differ(&baler, |cell| cell.case.compression.clone()) {
        columns.push(("compr", &|cell: &Cell| {
            let compression = cell.case.compression.clone();
            compression.unwrap_or_else(|| "-".to_owned())
        }));
    }
    if differ(&baler, |cell| cell.case.string_table) {
        columns.push(("strings", &|cell: &Cell| {
            let shown = match cell.case.string_table {
                None => "-",
                Some(true) => "table",
                Some(false) => "spelled",
            };
            shown.to_owned()
        }));
    }
    if differ(&baler, |cell| cell.case.wait_time_ms) {
        columns.push(("wait", &|cell: &Cell| {
            cell.case.wait_time_ms.map_or_else(|| "-".to_owned(), short)
        }));
    }
    columns
}

fn differ<T: PartialEq>(cells: &[&Cell], of: impl Fn(&Cell) -> T) -> bool {
    cells
        .windows(2)
        .any(|pair| matches!(pair, [one, other] if of(one) != of(other)))
}

/// No line is longer.
const WIDTH: usize = 100;

/// The table; where it would be too wide, these columns are left out, one after the other.
fn table(cells: &[Cell], mut columns: Vec<Column<'_>>, droppable: &[&str]) -> String {
    let mut droppable = droppable.iter();
    loop {
        let table = render(cells, &columns);
        let width = table.lines().map(|line| line.chars().count()).max();
        if width.unwrap_or(0) <= WIDTH {
            return table;
        }
        let Some(dropped) = droppable.next() else {
            return table;
        };
        columns.retain(|(heading, _)| heading != dropped);
    }
}

fn render(cells: &[Cell], columns: &[Column<'_>]) -> String {
    let settings = settings(cells);
    let mut headings = vec![("chunk size", true)];
    headings.extend(settings.iter().map(|(heading, _)| (*heading, false)));
    headings.extend(columns.iter().map(|(heading, _)| (*heading, false)));
    let mut table = TextTable::new(&headings);
    for cell in cells {
        let mut row = vec![cell.case.label()];
        row.extend(settings.iter().map(|(_, text)| text(cell)));
        row.extend(columns.iter().map(|(_, text)| text(cell)));
        table.push(row);
    }
    table.render()
}

/// CPU and network, as the paper has them, and by those of the rivals: `net` is without what making
/// the records in time costs by itself, on both sides of a ratio.
fn costs(cells: &[Cell]) -> String {
    let mut columns: Vec<Column<'_>> = vec![
        ("95% CI CPU s/s", &|cell| {
            range(cell.writer_cpu_seconds_per_second, 1.0, 4)
        }),
        ("95% CI KiB/s", &|cell| {
            range(cell.wire_bytes_per_second, 1_024.0, 1)
        }),
        ("net of load", &|cell| {
            decimals(cell.writer_cpu_beyond_load_seconds_per_second, 4)
        }),
        ("x CPU", &|cell| times(cell.writer_cpu_by_pipelined)),
        ("x net", &|cell| {
            times(cell.writer_cpu_beyond_load_by_pipelined)
        }),
        ("x bytes", &|cell| times(cell.wire_bytes_by_pipelined)),
    ];
    if cells
        .iter()
        .any(|cell| cell.writer_cpu_by_awaiting.is_some())
    {
        columns.push(("x await", &|cell| times(cell.writer_cpu_by_awaiting)));
    }
    table(cells, columns, &["x await", "net of load"])
}

/// What arrived, and when.
fn deliveries(cells: &[Cell]) -> String {
    let mut columns: Vec<Column<'_>> = vec![
        ("msg/s", &|cell| mean(cell.messages_per_second)),
        ("rec/s", &|cell| {
            cell.achieved_rate.map_or_else(|| "-".to_owned(), short)
        }),
        ("sat", &|cell| {
            let shown = match (cell.case.rate, cell.saturated) {
                (None, _) => "-",
                (Some(_), true) => "YES",
                (Some(_), false) => "no",
            };
            shown.to_owned()
        }),
        ("p50 ms", &|cell| mean(cell.latency_ms_p50)),
        ("p99", &|cell| mean(cell.latency_ms_p99)),
        ("p99.9", &|cell| mean(cell.latency_ms_p999)),
        ("reader", &|cell| {
            decimals(cell.reader_cpu_seconds_per_second, 3)
        }),
    ];
    if cells.iter().any(is_held_back) {
        // Beside whether the medium kept up.
        columns.insert(3, ("held", &held_back));
    }
    if cells
        .iter()
        .any(|cell| cell.broker_cpu_seconds_per_second.is_some())
    {
        columns.push(("broker", &|cell| {
            decimals(cell.broker_cpu_seconds_per_second, 3)
        }));
    }
    if cells.iter().any(|cell| cell.case.consumers > 1) {
        columns.push(("lag", &|cell| mean(cell.lag_records)));
    }
    columns.push(("MB", &|cell| {
        cell.writer_memory_bytes
            .map_or_else(|| "-".to_owned(), |bytes| short(bytes.mean / 1e6))
    }));
    columns.push(("closed by", &closed_by));
    columns.push(("lost", &|cell| cell.lost.to_string()));
    table(
        cells,
        columns,
        &["MB", "closed by", "p99.9", "broker", "reader"],
    )
}

/// Whether the load waited for the readers for so long that it shows.
fn is_held_back(cell: &Cell) -> bool {
    cell.held_back() >= 0.005
}

fn held_back(cell: &Cell) -> String {
    let percent = cell.held_back() * 100.0;
    cell.held_back_seconds_per_second
        .map_or_else(|| "-".to_owned(), |_| format!("{percent:.0}%"))
}

/// Where the writing process's CPU time goes.
fn reasons(cells: &[Cell]) -> String {
    let columns: Vec<Column<'_>> = vec![
        ("user s/s", &|cell| {
            decimals(cell.writer_user_cpu_seconds_per_second, 4)
        }),
        ("system s/s", &|cell| {
            decimals(cell.writer_system_cpu_seconds_per_second, 4)
        }),
        ("emitting s/s", &|cell| {
            decimals(cell.emitting_cpu_seconds_per_second, 4)
        }),
        ("switches/s", &|cell| {
            mean(cell.writer_context_switches_per_second)
        }),
        ("faults/s", &|cell| mean(cell.writer_page_faults_per_second)),
        ("segments/s", &|cell| mean(cell.wire_segments_per_second)),
    ];
    table(cells, columns, &["emitting s/s", "faults/s"])
}

/// The most frequent trigger, and how frequent it is if there is another.
fn closed_by(cell: &Cell) -> String {
    let closed = cell.closed_by;
    let all = [
        ("records", closed.records),
        ("age", closed.age),
        ("bytes", closed.bytes),
        ("flush", closed.flush),
    ];
    let sum: u64 = all.iter().map(|(_, count)| count).sum();
    let Some((name, count)) = all.into_iter().max_by_key(|(_, count)| *count) else {
        return "-".to_owned();
    };
    match (sum, count * 100 / sum.max(1)) {
        (0, _) => "-".to_owned(),
        (_, 100) => name.to_owned(),
        (_, percent) => format!("{name} {percent}%"),
    }
}

fn range(interval: Option<Interval>, unit: f64, decimals: usize) -> String {
    interval.map_or_else(
        || "-".to_owned(),
        |it| {
            let (low, high) = ((it.low / unit).max(0.0), it.high / unit);
            format!("[{low:.decimals$};{high:.decimals$}]")
        },
    )
}

fn decimals(interval: Option<Interval>, decimals: usize) -> String {
    interval.map_or_else(|| "-".to_owned(), |it| format!("{:.decimals$}", it.mean))
}

fn mean(interval: Option<Interval>) -> String {
    interval.map_or_else(|| "-".to_owned(), |it| short(it.mean))
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"))
}

/// What to set and how far the model can be trusted.
pub(super) fn advice(models: &[CostModel], recommended: &[Recommendation]) -> String {
    let mut out = String::new();
    if recommended.is_empty() {
        let none = "No setting is recommended: too few sizes kept up, or none keeps to the bounds.";
        line(&mut out, none);
    }
    for one in recommended {
        let it = &one.expected;
        let how = if one.measured {
            "measured"
        } else {
            "predicted, not measured"
        };
        line(
            &mut out,
            &format!(
                "At {} records/s set chunk_records = {}, wait_time = {} ms, compression {}: {:.4} CPU \
                 s/s, {} B/s, p99 {} ms ({how}).",
                short(one.rate),
                it.chunk_records,
                it.wait_time_ms,
                one.compression,
                it.writer_cpu_seconds_per_second,
                short(it.wire_bytes_per_second),
                short(it.latency_ms_p99),
            ),
        );
    }
    for model in models {
        line(
            &mut out,
            &format!(
                "Model, compression {}: {:.0} us a look, {:.3} us a single message, {:.1} ns a record, {:.2} \
                 ns a byte; {:.0} bytes a message beside {:.3} x its payload.",
                model.compression,
                model.cpu_seconds_per_look * 1e6,
                model.cpu_seconds_per_message * 1e6,
                model.cpu_seconds_per_record * 1e9,
                model.cpu_seconds_per_byte * 1e9,
                model.wire_bytes_per_message,
                model.wire_bytes_per_payload_byte,
            ),
        );
        let errors: Vec<String> = model
            .held_out
            .iter()
            .map(|one| {
                let end = if one.between { "" } else { " (extrapolated)" };
                format!(
                    "{}: CPU {:+.1} %, bytes {:+.1} %{end}",
                    one.chunk_records,
                    one.cpu_error * 100.0,
                    one.bytes_error * 100.0
                )
            })
            .collect();
        line(
            &mut out,
            &format!(
                "Its error at sizes left out when it was fitted: {}.",
                errors.join("; ")
            ),
        );
    }
    out
}

/// The cells as comma-separated values, RFC 4180; a line of names first.
pub(super) fn csv(cells: &[Cell]) -> String {
    type Named = (&'static str, fn(&Cell) -> Option<Interval>);
    const INTERVALS: &[Named] = &[
        ("writer_cpu_seconds_per_second", |it| {
            it.writer_cpu_seconds_per_second
        }),
        ("writer_cpu_beyond_load_seconds_per_second", |it| {
            it.writer_cpu_beyond_load_seconds_per_second
        }),
        ("writer_user_cpu_seconds_per_second", |it| {
            it.writer_user_cpu_seconds_per_second
        }),
        ("writer_system_cpu_seconds_per_second", |it| {
            it.writer_system_cpu_seconds_per_second
        }),
        ("emitting_cpu_seconds_per_second", |it| {
            it.emitting_cpu_seconds_per_second
        }),
        ("reader_cpu_seconds_per_second", |it| {
            it.reader_cpu_seconds_per_second
        }),
        ("broker_cpu_seconds_per_second", |it| {
            it.broker_cpu_seconds_per_second
        }),
        ("writer_context_switches_per_second", |it| {
            it.writer_context_switches_per_second
        }),
        ("writer_page_faults_per_second", |it| {
            it.writer_page_faults_per_second
        }),
        ("wire_bytes_per_second", |it| it.wire_bytes_per_second),
        ("wire_sent_bytes_per_second", |it| {
            it.wire_sent_bytes_per_second
        }),
        ("wire_received_bytes_per_second", |it| {
            it.wire_received_bytes_per_second
        }),
        ("wire_segments_per_second", |it| it.wire_segments_per_second),
        ("messages_per_second", |it| it.messages_per_second),
        ("latency_ms_p50", |it| it.latency_ms_p50),
        ("latency_ms_p99", |it| it.latency_ms_p99),
        ("latency_ms_p999", |it| it.latency_ms_p999),
        ("lag_records", |it| it.lag_records),
        ("held_back_seconds_per_second", |it| {
            it.held_back_seconds_per_second
        }),
        ("writer_memory_bytes", |it| it.writer_memory_bytes),
    ];
    let mut out =
        "way,chunk_records,rate,compression,string_table,wait_time_ms,consumers,repetitions,seconds".to_owned();
    for (name, _) in INTERVALS {
        out.push_str(&format!(",{name},{name}_low,{name}_high"));
    }
    out.push_str(
        ",closed_by_records,closed_by_age,closed_by_bytes,closed_by_flush,offered_rate,achieved_rate,\
         saturated,lost,writer_cpu_by_pipelined,writer_cpu_by_awaiting,\
         writer_cpu_beyond_load_by_pipelined,wire_bytes_by_pipelined\r\n",
    );
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for cell in cells {
        let case = &cell.case;
        let mut row = vec![
            case.way.name().to_owned(),
            case.chunk_records
                .map_or_else(String::new, |records| records.to_string()),
            optional(case.rate),
            case.compression.clone().unwrap_or_default(),
            case.string_table
                .map_or_else(String::new, |table| table.to_string()),
            optional(case.wait_time_ms),
            case.consumers.to_string(),
            cell.repetitions.to_string(),
            cell.seconds.to_string(),
        ];
        for (_, of) in INTERVALS {
            let interval = of(cell);
            row.push(optional(interval.map(|it| it.mean)));
            row.push(optional(interval.map(|it| it.low)));
            row.push(optional(interval.map(|it| it.high)));
        }
        let closed = cell.closed_by;
        for count in [closed.records, closed.age, closed.bytes, closed.flush] {
            row.push(count.to_string());
        }
        row.push(optional(cell.offered_rate));
        row.push(optional(cell.achieved_rate));
        row.push(cell.saturated.to_string());
        row.push(cell.lost.to_string());
        row.push(optional(cell.writer_cpu_by_pipelined));
        row.push(optional(cell.writer_cpu_by_awaiting));
        row.push(optional(cell.writer_cpu_beyond_load_by_pipelined));
        row.push(optional(cell.wire_bytes_by_pipelined));
        // Writing to a string cannot fail; no value has a comma or a quote.
        let written = write!(out, "{}\r\n", row.join(","));
        debug_assert!(written.is_ok());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::super::sample::{Sample, SecondSample};
    use super::*;

    fn cell(way: Way, chunk_records: Option<u32>, cpu: f64) -> Cell {
        let case = Case {
            way,
            chunk_records,
            rate: Some(10_000.0),
            compression: chunk_records.map(|_| "none".to_owned()),
            string_table: chunk_records.map(|_| true),
            wait_time_ms: chunk_records.map(|_| 500.0),
            consumers: 1,
        };
        let second = SecondSample {
            seconds: 1.0,
            writer_cpu: cpu,
            broker_cpu: Some(0.123_456),
            confirmed: 10_000.0,
            messages: 10_000.0,
            lag_records: 123_456.0,
            writer_bytes: 123_456_789,
            ..SecondSample::default()
        };
        let sample = Sample {
            seconds: vec![second],
            emitted: 1,
            arrived: 1,
            unaltered: true,
            ..Sample::default()
        };
        Cell::new(&case, &[sample.clone(), sample], None)
    }

    #[test]
    fn the_table_fits_100_columns_and_names_every_cell() {
        let mut cells = vec![
            cell(Way::Pipelined, None, 0.612_345),
            cell(Way::Awaiting, None, 1.5),
            cell(Way::Baler, Some(1_024), 0.012_3),
        ];
        super::super::cell::compare(&mut cells);
        let mut other = cells[2].clone();
        other.case.rate = None;
        other.case.consumers = 16;
        other.case.compression = Some("zstd:19".to_owned());
        other.case.wait_time_ms = Some(1.25);
        cells.push(other);
        cells[3].held_back_seconds_per_second = cells[3].writer_cpu_seconds_per_second;
        cells[1].failure = Some("a long story about what was wrong ".repeat(5));
        let text = text(&cells, 0.5, &[], Some(&[]));
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        for name in [
            "pipelined",
            "awaiting",
            "1024",
            "max",
            "No setting",
            "waited for the readers",
            "1.73 times as wide",
        ] {
            assert!(text.contains(name), "{text}");
        }
    }

    #[test]
    fn every_line_of_the_csv_has_as_many_values_as_names() {
        let cells = [
            cell(Way::Pipelined, None, 0.5),
            cell(Way::Baler, Some(16), 0.1),
        ];
        let csv = csv(&cells);
        let counts: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(counts.len(), 3);
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    }
}
