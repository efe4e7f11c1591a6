//! The page of a sweep: the recommendation first, then costs, charts and the model.

use baler_common::transport::ContainerKind;

use super::advice::{NONE, advice};
use super::case::Way;
use super::cell::{Cell, LATENCY_P99, WIRE_BYTES, WRITER_CPU};
use super::model::CostModel;
use super::recommend::Recommendation;
use super::report::{COSTS, DELIVERIES, ERRORS, SETTINGS, factors, problems};
use super::user_records::RecordsReport;
use crate::chart::{Chart, Lines, Point, Series, lines};
use crate::harness::Failure;
use crate::machine::Provenance;
use crate::report::{self, differ, escaped, figure, html_table, section, short, short_or_dash};

/// One page of HTML; it loads nothing.
///
/// # Errors
///
/// Drawing fails.
pub(super) fn page(
    to: &str,
    records: Option<&RecordsReport>,
    cells: &[Cell],
    models: &[CostModel],
    recommended: &[Recommendation],
    provenance: &Provenance,
) -> Result<String, Failure> {
    let mut advised = String::new();
    let said = recommended.iter().map(|one| advice(one, cells, models));
    let mut said: Vec<Vec<String>> = said.collect();
    if said.is_empty() {
        said.push(vec![NONE.to_owned()]);
    }
    for sentences in said {
        if let Some((first, rest)) = sentences.split_first() {
            advised.push_str(&paragraph("lead", first));
            advised.push_str(&paragraph("", &rest.join(" ")));
        }
    }
    if let Some(records) = records {
        advised.push_str(&paragraph("", &records.sentence()));
    }
    for problem in problems(cells) {
        advised.push_str(&paragraph("wrong", &problem));
    }
    let mut body = format!("<section class=\"advice\">\n{advised}</section>\n");
    let mut charts = String::new();
    for it in &CHARTS {
        if let Some(chart) = chart(it, cells, recommended)? {
            charts.push_str(&figure(it.0, &chart));
        }
    }
    if !charts.is_empty() {
        body.push_str(&format!("<section class=\"charts\">\n{charts}</section>\n"));
    }
    let tables = [
        ("What each setting costs", COSTS),
        ("What arrived, and when", DELIVERIES),
    ];
    for (title, columns) in tables {
        let table = html_table(cells, &[SETTINGS, columns].concat());
        body.push_str(&section(title, &table));
    }
    for model in models {
        let title = format!("The model, compression {}", model.compression);
        let table = html_table(&model.held_out, ERRORS);
        let factors = paragraph("", &factors(model));
        body.push_str(&section(&title, &(factors + &table)));
    }
    let heading = format!("What each chunk size costs: {to}");
    Ok(report::page(&heading, &body, provenance))
}

fn paragraph(class: &str, text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("<p class=\"{class}\">{}</p>\n", escaped(text)),
    }
}

/// A kind of chart: its title, the figure of a cell, and the same figure of a recommendation.
type Kind = (&'static str, &'static str, fn(&Recommendation) -> f64);

const CHARTS: [Kind; 3] = [
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

/// Returns the chart: a line for all cells that differ only in the size; `None` if no cell has the
/// figure.
fn chart(
    (_, figure, expected): &Kind,
    cells: &[Cell],
    recommended: &[Recommendation],
) -> Result<Option<Chart>, Failure> {
    let cells: Vec<&Cell> = cells
        .iter()
        .filter(|it| it.case.way != Way::Pacing)
        .collect();
    let chunked: Vec<Vec<String>> = cells
        .iter()
        .filter(|it| it.case.chunk_records.is_some())
        .map(|it| settings(it))
        .collect();
    let rates_differ = differ(&cells, |it| it.case.rate);
    let (mut all, mut levels) = (Vec::new(), Vec::new());
    for cell in &cells {
        let Some(interval) = cell.figure(figure).filter(|it| it.mean > 0.0) else {
            continue;
        };
        match cell.case.chunk_records {
            Some(size) => {
                // The name has only settings in which lines differ.
                let own = settings(cell).into_iter().enumerate();
                let own = own.filter(|(at, _)| differ(&chunked, |it| it[*at].clone()));
                let name: Vec<String> = own.map(|(_, setting)| setting).collect();
                let name = match name.is_empty() {
                    true => "chunks".to_owned(),
                    false => name.join(", "),
                };
                let point = Point {
                    x: f64::from(size),
                    low_mean_high: [interval.low, interval.mean, interval.high],
                };
                Series::add(&mut all, name, point);
            }
            None if !cell.saturated => {
                let name = cell.case.way.name().to_owned();
                let name = match rates_differ {
                    true => format!("{name}, {}", rate(cell)),
                    false => name,
                };
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
        x: "records a chunk",
        lines: &all,
        levels: &levels,
        marks: &marks.collect::<Vec<_>>(),
    })
}

fn rate(cell: &Cell) -> String {
    let rate = cell.case.rate.map_or_else(|| "max".to_owned(), short);
    format!("{rate} records/s")
}

/// The settings of chunks, beside their size.
fn settings(cell: &Cell) -> Vec<String> {
    let case = &cell.case;
    vec![
        rate(cell),
        case.container().map_or("-", ContainerKind::name).to_owned(),
        case.compression.as_deref().unwrap_or("-").to_owned(),
        format!("wait {} ms", short_or_dash(case.wait_time_ms)),
        format!("{} reading", case.consumers),
    ]
}

#[cfg(test)]
mod tests;
