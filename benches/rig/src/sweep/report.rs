//! The cells as tables, and a page with charts.

use super::cell::{
    BEYOND_LOAD, BEYOND_LOAD_BY_PIPELINED, BROKER_CPU, BYTES_BY_PIPELINED, CPU_BY_AWAITING,
    CPU_BY_PIPELINED, Cell, LATENCY_P50, LATENCY_P99, MESSAGES, READER_CPU, WIRE_BYTES, WRITER_CPU,
};
use super::model::CostModel;
use super::recommend::Recommendation;
use crate::chart::{Lines, Point, Series, lines};
use crate::harness::Failure;
use crate::machine::Provenance;
use crate::report::{self, Column, differ, short, short_or_dash};

/// The tables, failures and losses, and the recommendations with their models.
pub(super) fn text(
    cells: &[Cell],
    models: &[CostModel],
    recommended: Option<&[Recommendation]>,
) -> String {
    let mut out = report::table(cells, &[SETTINGS, COSTS].concat());
    out.push('\n');
    out.push_str(&report::table(cells, &[SETTINGS, DELIVERIES].concat()));
    for cell in cells {
        let label = cell.case.label();
        if let Some(failure) = &cell.failure {
            line(&mut out, &format!("{label}: {failure}"));
        }
        if cell.lost > 0 {
            let lost = cell.lost;
            line(
                &mut out,
                &format!("{label}: {lost} records were lost or altered"),
            );
        }
    }
    if let Some(recommended) = recommended {
        out.push('\n');
        advise(&mut out, models, recommended);
    }
    out
}

/// A line, broken at 98 columns.
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

/// The settings of a case, where cases differ in them.
const SETTINGS: &[Column<Cell>] = &[
    Column::text("chunk size", |cell| cell.case.label()),
    Column::number("rate", |cell: &Cell| {
        cell.case.rate.map_or_else(|| "max".to_owned(), short)
    })
    .shown_for(|cells: &[Cell]| differ(cells, |cell| cell.case.rate)),
    Column::number("cons", |cell: &Cell| cell.case.consumers.to_string())
        .shown_for(|cells: &[Cell]| differ(cells, |cell| cell.case.consumers)),
    Column::number("compr", |cell: &Cell| {
        cell.case
            .compression
            .clone()
            .unwrap_or_else(|| "-".to_owned())
    })
    .shown_for(|cells: &[Cell]| {
        let chunks = cells
            .iter()
            .filter_map(|cell| cell.case.compression.as_ref());
        chunks.clone().any(|one| Some(one) != chunks.clone().next())
    }),
    Column::number("wait", |cell: &Cell| short_or_dash(cell.case.wait_time_ms)).shown_for(
        |cells: &[Cell]| {
            let chunks = cells.iter().filter_map(|cell| cell.case.wait_time_ms);
            chunks.clone().any(|one| Some(one) != chunks.clone().next())
        },
    ),
];

/// CPU and network, as the paper has them, and by those of the client library alone. `net` is without
/// the cost of making the records in time, on both sides of a ratio.
const COSTS: &[Column<Cell>] = &[
    Column::number("CPU s/s", |cell| decimals(cell.mean(WRITER_CPU), 4)),
    Column::number("±95 %", |cell| {
        decimals(cell.figure(WRITER_CPU).map(|it| it.margin()), 4)
    }),
    Column::number("net", |cell| decimals(cell.mean(BEYOND_LOAD), 4)),
    Column::number("KiB/s", |cell| {
        decimals(cell.mean(WIRE_BYTES).map(|bytes| bytes / 1024.0), 1)
    }),
    Column::number("x CPU", |cell| decimals(cell.mean(CPU_BY_PIPELINED), 3)),
    Column::number("x net", |cell| {
        decimals(cell.mean(BEYOND_LOAD_BY_PIPELINED), 3)
    }),
    Column::number("x bytes", |cell| decimals(cell.mean(BYTES_BY_PIPELINED), 3)),
    Column::number("x await", |cell| decimals(cell.mean(CPU_BY_AWAITING), 3)),
];

/// What arrived, and when.
const DELIVERIES: &[Column<Cell>] = &[
    Column::number("msg/s", |cell| short_or_dash(cell.mean(MESSAGES))),
    Column::number("rec/s", |cell| short_or_dash(cell.achieved_rate)),
    Column::number("sat", |cell| {
        let shown = match (cell.case.rate, cell.saturated) {
            (None, _) => "-",
            (Some(_), true) => "YES",
            (Some(_), false) => "no",
        };
        shown.to_owned()
    }),
    Column::number("p50 ms", |cell| short_or_dash(cell.mean(LATENCY_P50))),
    Column::number("p99 ms", |cell| short_or_dash(cell.mean(LATENCY_P99))),
    Column::number("reader", |cell| decimals(cell.mean(READER_CPU), 3)),
    Column::number("broker", |cell: &Cell| decimals(cell.mean(BROKER_CPU), 3))
        .shown_for(|cells: &[Cell]| cells.iter().any(|cell| cell.mean(BROKER_CPU).is_some())),
    Column::number("lost", |cell| cell.lost.to_string()),
];

fn decimals(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

/// The recommendations, and how far the models can be trusted.
fn advise(out: &mut String, models: &[CostModel], recommended: &[Recommendation]) {
    if recommended.is_empty() {
        let none =
            "No setting is recommended: too few sizes kept up, or none is within the bounds.";
        line(out, none);
    }
    for one in recommended {
        let it = &one.expected;
        let how = match one.measured {
            true => "measured",
            false => "predicted, not measured",
        };
        let text = format!(
            "At {} records/s set chunk_records = {}, wait_time = {} ms, compression {}: {:.4} CPU s/s, \
             {} B/s, p99 {} ms ({how}).",
            short(one.rate),
            it.chunk_records,
            it.wait_time_ms,
            one.compression,
            it.writer_cpu_seconds_per_second,
            short(it.wire_bytes_per_second),
            short(it.latency_ms_p99),
        );
        line(out, &text);
    }
    for model in models {
        let text = format!(
            "Model, compression {}: {:.0} us a wake-up, {:.3} us a single message, {:.1} ns a record, \
             {:.2} ns a byte; {:.0} bytes a message beside {:.3} x its payload.",
            model.compression,
            model.cpu_seconds_per_look * 1e6,
            model.cpu_seconds_per_message * 1e6,
            model.cpu_seconds_per_record * 1e9,
            model.cpu_seconds_per_byte * 1e9,
            model.wire_bytes_per_message,
            model.wire_bytes_per_payload_byte,
        );
        line(out, &text);
        let errors: Vec<String> = model
            .held_out
            .iter()
            .map(|one| {
                let end = if one.between { "" } else { " (extrapolated)" };
                let (cpu, bytes) = (one.cpu_error * 100.0, one.bytes_error * 100.0);
                let size = one.chunk_records;
                format!("{size}: CPU {cpu:+.1} %, bytes {bytes:+.1} %{end}")
            })
            .collect();
        let errors = errors.join("; ");
        line(
            out,
            &format!("Its error at sizes that were left out of the fit: {errors}."),
        );
    }
}

/// A chart: its title, the figure of a cell, and the same of a recommendation.
type Chart = (&'static str, &'static str, fn(&Recommendation) -> f64);

const CHARTS: [Chart; 3] = [
    (
        "CPU seconds a second of the writing process",
        WRITER_CPU,
        |it| it.expected.writer_cpu_seconds_per_second,
    ),
    ("Bytes a second on the wire, both ways", WIRE_BYTES, |it| {
        it.expected.wire_bytes_per_second
    }),
    (
        "Latency, 99th percentile, in milliseconds",
        LATENCY_P99,
        |it| it.expected.latency_ms_p99,
    ),
];

/// One page of HTML with charts and tables; it loads nothing.
///
/// # Errors
///
/// Drawing fails.
pub(super) fn page(
    to: &str,
    cells: &[&Cell],
    recommended: &[Recommendation],
    text: &str,
    provenance: &Provenance,
) -> Result<String, Failure> {
    let mut charts = String::new();
    for chart in &CHARTS {
        if let Some(svg) = svg(chart, cells, recommended)? {
            let title = chart.0;
            charts.push_str(&format!(
                "<figure role=\"img\" aria-label=\"{title}\">{svg}</figure>\n"
            ));
        }
    }
    let heading = format!("What each chunk size costs: {to}");
    Ok(report::page(&heading, &charts, text, provenance))
}

/// The chart as SVG: a line for all cells that differ in nothing but the size; `None` where no cell has
/// the figure.
fn svg(
    (title, figure, expected): &Chart,
    cells: &[&Cell],
    recommended: &[Recommendation],
) -> Result<Option<String>, Failure> {
    let rate = |cell: &Cell| cell.case.rate.map_or_else(|| "max".to_owned(), short);
    let (mut all, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        let case = &cell.case;
        let Some(interval) = cell.figure(figure).filter(|it| it.mean > 0.0) else {
            continue;
        };
        match case.chunk_records {
            Some(size) => {
                let name = format!(
                    "{}/s, {}, {} ms, {} reading",
                    rate(cell),
                    case.compression.as_deref().unwrap_or("-"),
                    short_or_dash(case.wait_time_ms),
                    case.consumers
                );
                let point = Point {
                    x: f64::from(size),
                    low_mean_high: [interval.low, interval.mean, interval.high],
                };
                Series::add(&mut all, name, point);
            }
            None if !cell.saturated => {
                let name = format!("{}, {}/s", case.way.name(), rate(cell));
                levels.push((name, interval.mean));
            }
            None => {}
        }
    }
    for line in &mut all {
        line.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    let marks = recommended.iter().map(|one| {
        let size = one.expected.chunk_records;
        (
            format!("recommended: {size}"),
            f64::from(size),
            expected(one),
        )
    });
    lines(&Lines {
        title,
        x: "records a chunk",
        lines: &all,
        levels: &levels,
        marks: &marks.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::case::Way;
    use super::super::cell::cells as cells_of;
    use super::super::cell::tests::{case, runs, sample};
    use super::*;

    fn cells() -> Vec<Cell> {
        let cases = [
            (Way::Pipelined, None, 0.612_345),
            (Way::Awaiting, None, 1.5),
            (Way::Baler, Some(1), 0.5),
            (Way::Baler, Some(1_024), 0.012_3),
        ];
        let all = cases.map(|(_, _, cpu)| {
            let mut sample = sample(cpu, 1_000.0);
            for name in [BROKER_CPU, READER_CPU] {
                sample.figures.insert(name.to_owned(), 0.123_456);
            }
            runs(&[sample.clone(), sample])
        });
        cells_of(&cases.map(|(way, size, _)| case(way, size)), &all)
    }

    #[test]
    fn the_tables_fit_100_columns_and_name_every_cell() {
        let mut cells = cells();
        let mut other = cells[3].clone();
        other.case.rate = None;
        other.case.consumers = 16;
        other.case.compression = Some("zstd:19".to_owned());
        other.case.wait_time_ms = Some(1.25);
        cells.push(other);
        cells[1].failure = Some("a long story about what was wrong ".repeat(5));
        cells[2].lost = 3;
        let text = text(&cells, &[], Some(&[]));
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        for name in [
            "pipelined",
            "awaiting",
            "1024",
            "max",
            "No setting",
            "1: 3 records",
        ] {
            assert!(text.contains(name), "{text}");
        }
    }

    #[test]
    fn the_page_has_every_chart_and_refers_to_nothing_outside() {
        let cells = cells();
        let cells: Vec<&Cell> = cells.iter().collect();
        let provenance = Provenance::this();
        let page = page("tcp://a:1", &cells, &[], "a < b", &provenance).unwrap();
        assert_eq!(page.matches("<svg").count(), 3);
        assert_eq!(page.matches("<polygon").count(), 3);
        for outside in ["src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        // The namespace of SVG is a name, not an address.
        let rest = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!rest.contains("http"), "{rest}");
        assert!(page.contains("a &lt; b") && page.contains("pipelined"));
    }

    #[test]
    fn cells_without_figures_have_no_chart_and_the_page_is_still_there() {
        let cells = cells_of(&[case(Way::Baler, Some(8))], &[runs(&[])]);
        let page = page("tcp://a:1", &[&cells[0]], &[], "", &Provenance::this()).unwrap();
        assert!(!page.contains("<svg") && page.contains("<h1>"));
    }
}
