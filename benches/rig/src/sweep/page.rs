//! The page of a sweep: the recommendation first, then costs, charts and the model.

use baler_common::transport::ContainerKind;

use super::advice::{NONE, advice};
use super::case::Way;
use super::cell::{Cell, LATENCY_P99, WIRE_BYTES, WRITER_CPU};
use super::model::CostModel;
use super::recommend::Recommendation;
use super::report::{COSTS, DELIVERIES, ERRORS, SETTINGS, factors, problems};
use super::user_records::RecordsReport;
use crate::chart::{Lines, Point, Series, lines};
use crate::harness::Failure;
use crate::machine::Provenance;
use crate::report::{self, escaped, figure, html_table, short, short_or_dash};

/// One page of HTML; it loads nothing.
///
/// # Errors
///
/// Drawing fails.
pub(super) fn page(
    (to, records): (&str, Option<&RecordsReport>),
    cells: &[Cell],
    models: &[CostModel],
    recommended: &[Recommendation],
    provenance: &Provenance,
) -> Result<String, Failure> {
    let mut body = String::from("<section class=\"advice\">\n");
    let said = recommended.iter().map(|one| advice(one, cells, models));
    let mut said: Vec<Vec<String>> = said.collect();
    if said.is_empty() {
        said.push(vec![NONE.to_owned()]);
    }
    for sentences in said {
        if let Some((first, rest)) = sentences.split_first() {
            let (first, rest) = (escaped(first), escaped(&rest.join(" ")));
            body.push_str(&format!("<p class=\"lead\">{first}</p>\n<p>{rest}</p>\n"));
        }
    }
    if let Some(records) = records {
        body.push_str(&format!("<p>{}</p>\n", escaped(&records.sentence())));
    }
    body.push_str("</section>\n");
    for problem in problems(cells) {
        body.push_str(&format!("<p class=\"wrong\">{}</p>\n", escaped(&problem)));
    }
    for chart in &CHARTS {
        if let Some(svg) = svg(chart, cells, recommended)? {
            body.push_str(&figure(chart.0, &svg));
        }
    }
    body.push_str("<h2>What each setting costs</h2>\n");
    body.push_str(&html_table(cells, &[SETTINGS, COSTS].concat()));
    body.push_str("<h2>What arrived, and when</h2>\n");
    body.push_str(&html_table(cells, &[SETTINGS, DELIVERIES].concat()));
    for model in models {
        let name = escaped(&model.compression);
        body.push_str(&format!("<h2>The model, compression {name}</h2>\n"));
        body.push_str(&format!("<p>{}</p>\n", escaped(&factors(model))));
        body.push_str(&html_table(&model.held_out, ERRORS));
    }
    let heading = format!("What each chunk size costs: {to}");
    Ok(report::page(&heading, &body, provenance))
}

/// A chart: its title, the figure of a cell, and the same figure of a recommendation.
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

/// Returns the chart as SVG: a line for all cells that differ only in the size; `None` if no cell
/// has the figure.
fn svg(
    (_, figure, expected): &Chart,
    cells: &[Cell],
    recommended: &[Recommendation],
) -> Result<Option<String>, Failure> {
    let rate = |cell: &Cell| cell.case.rate.map_or_else(|| "max".to_owned(), short);
    let (mut all, mut levels) = (Vec::new(), Vec::new());
    for cell in cells.iter().filter(|it| it.case.way != Way::Pacing) {
        let case = &cell.case;
        let Some(interval) = cell.figure(figure).filter(|it| it.mean > 0.0) else {
            continue;
        };
        match case.chunk_records {
            Some(size) => {
                let name = format!(
                    "{}/s, {}, {}, {} ms, {} reading",
                    rate(cell),
                    case.container().map_or("-", ContainerKind::name),
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
        x: "records a chunk",
        lines: &all,
        levels: &levels,
        marks: &marks.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests;
