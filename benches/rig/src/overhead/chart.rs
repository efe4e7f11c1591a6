//! Rows as pictures: one bar a variant, or one line a variant where the depth differs.

use super::row::Row;
use crate::chart::{Bar, Lines, Point, Series, bars, lines};
use crate::failure::Failure;
use crate::machine::Provenance;
use crate::page;

/// Bars of these are drawn in another colour: they are what the others stand beside.
const CONTROLS: &[&str] = &["none", "clock", "instant", "system-clock"];

/// The chart of these rows, as SVG: overhead over depth if they differ in it, else a bar for each.
///
/// # Errors
///
/// Drawing fails, or there is nothing to draw.
pub fn svg(rows: &[Row]) -> Result<String, Failure> {
    let first = rows
        .first()
        .ok_or_else(|| Failure::new("there is no row"))?;
    if rows.iter().all(|row| row.depth == first.depth) {
        let all: Vec<Bar> = rows.iter().filter_map(bar).collect();
        return bars("ns per instrumented call, median and quartiles", &all);
    }
    let mut all = Vec::new();
    for row in rows {
        if let Some(point) = point(row) {
            Series::add(&mut all, label(row), point);
        }
    }
    let chart = lines(&Lines {
        title: "ns per call from outside over its depth: mean ± standard deviation",
        x: "depth",
        lines: &all,
        levels: &[],
        marks: &[],
    })?;
    chart.ok_or_else(|| Failure::new("no row has a figure"))
}

fn bar(row: &Row) -> Option<Bar> {
    let value = row.median_ns_per_call?;
    Some(Bar {
        name: label(row),
        value,
        quartiles: [row.q1_ns_per_call, row.q3_ns_per_call].map(|it| it.unwrap_or(value)),
        is_control: CONTROLS.contains(&row.variant.as_str()),
    })
}

/// As figure 5 of "Towards solving the challenge of minimal overhead monitoring" has it.
fn point(row: &Row) -> Option<Point> {
    let depth = f64::from(row.depth);
    let mean = row.mean_ns_per_call? * depth;
    let deviation = row.deviation_ns.unwrap_or_default() * depth;
    Some(Point {
        x: depth,
        low_mean_high: [mean - deviation, mean, mean + deviation],
    })
}

fn label(row: &Row) -> String {
    let threads = match row.threads {
        1 => String::new(),
        threads => format!(" x{threads}"),
    };
    let paced = match row.paced_calls_per_second {
        None => "",
        Some(_) => " paced",
    };
    format!("{}{threads}{paced}", row.variant)
}

/// One page of HTML that holds the chart, the table and where they come from, and loads nothing.
///
/// # Errors
///
/// As [`svg`].
pub fn page(rows: &[Row], table: &str, provenance: &Provenance) -> Result<String, Failure> {
    let heading = "What a probe costs the application";
    Ok(page::page(
        "Overhead",
        heading,
        &svg(rows)?,
        table,
        provenance,
    ))
}
