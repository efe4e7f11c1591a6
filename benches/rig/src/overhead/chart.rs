//! Rows as pictures: one bar a variant, or one line a variant where the depth differs.

use plotters::prelude::*;

use super::row::Row;
use crate::colours::COLOURS;
use crate::failure::Failure;
use crate::machine::Provenance;
use crate::page;
use crate::report::short;

/// Width of a chart, in pixels.
const WIDTH: u32 = 960;

/// Height of a bar with the space around it, in pixels.
const BAR: u32 = 24;

/// Text of bars and axes, in pixels; a little less is drawn.
const TEXT: (&str, u32) = ("sans-serif", 17);

/// Text above the chart.
const CAPTION: (&str, u32) = ("sans-serif", 21);

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
    let mut out = String::new();
    if rows.iter().any(|row| row.depth != first.depth) {
        lines(rows, &mut out)?;
    } else {
        bars(rows, &mut out)?;
    }
    Ok(out)
}

fn cannot_draw<E: std::fmt::Display>() -> impl Fn(E) -> Failure {
    Failure::cannot("draw")
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

/// Medians as bars, on a logarithmic scale: the least and the most expensive differ by two orders of
/// magnitude. A line from the first to the third quartile.
fn bars(rows: &[Row], out: &mut String) -> Result<(), Failure> {
    let rows: Vec<_> = rows
        .iter()
        .filter(|row| row.median_ns_per_call.is_some())
        .collect();
    let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let area =
        SVGBackend::with_string(out, (WIDTH, count.saturating_mul(BAR) + 90)).into_drawing_area();
    area.fill(&WHITE).map_err(cannot_draw())?;
    let largest = rows
        .iter()
        .map(|row| quartiles_end(row, row.median_ns_per_call.unwrap_or_default()))
        .fold(1.0, f64::max);
    let end = f64::from(count);
    let mut chart = ChartBuilder::on(&area)
        .caption("ns per instrumented call, median and quartiles", CAPTION)
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(215)
        .build_cartesian_2d((0.5..largest * 2.0).log_scale(), end..0.0)
        .map_err(cannot_draw())?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(8)
        .x_label_formatter(&|ns| short(*ns))
        .label_style(TEXT)
        .light_line_style(WHITE)
        .draw()
        .map_err(cannot_draw())?;
    for (top, row) in (0_u32..).zip(rows) {
        let top = f64::from(top);
        let median = row.median_ns_per_call.unwrap_or_default();
        let colour = match CONTROLS.contains(&row.variant.as_str()) {
            true => RGBColor(140, 140, 140),
            false => RGBColor(31, 119, 180),
        };
        let bar = Rectangle::new([(0.5, top + 0.15), (median, top + 0.85)], colour.filled());
        let quartiles = [row.q1_ns_per_call, row.q3_ns_per_call]
            .map(|quartile| (quartile.unwrap_or(median), top + 0.5));
        let quartiles = PathElement::new(quartiles.to_vec(), BLACK.stroke_width(2));
        let right = quartiles_end(row, median) * 1.05;
        let value = Text::new(short(median), (right, top + 0.15), TEXT);
        chart
            .draw_series(std::iter::once(bar))
            .map_err(cannot_draw())?;
        chart
            .draw_series(std::iter::once(quartiles))
            .map_err(cannot_draw())?;
        chart
            .draw_series(std::iter::once(value))
            .map_err(cannot_draw())?;
        let (_, y) = chart.backend_coord(&(0.5, top + 0.15));
        area.draw(&Text::new(label(row), (12, y), TEXT))
            .map_err(cannot_draw())?;
    }
    area.present().map_err(cannot_draw())
}

fn quartiles_end(row: &Row, median: f64) -> f64 {
    row.q3_ns_per_call.map_or(median, |q3| q3.max(median))
}

/// Nanoseconds of a call from outside over its depth, with a band of a standard deviation to each
/// side, as figure 5 of "Towards solving the challenge of minimal overhead monitoring" has it.
fn lines(rows: &[Row], out: &mut String) -> Result<(), Failure> {
    let area = SVGBackend::with_string(out, (WIDTH, 540)).into_drawing_area();
    area.fill(&WHITE).map_err(cannot_draw())?;
    let outer = |row: &Row| {
        let depth = f64::from(row.depth);
        let mean = row.mean_ns_per_call? * depth;
        let deviation = row.deviation_ns.unwrap_or_default() * depth;
        Some((depth, mean, deviation))
    };
    let deepest = rows.iter().map(|row| row.depth).max().unwrap_or(1);
    // The bands may reach beyond the picture: a single disturbed batch would flatten all lines.
    let highest = rows
        .iter()
        .filter_map(outer)
        .map(|(_, mean, _)| mean)
        .fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(&area)
        .caption(
            "ns per call from outside over its depth: mean ± standard deviation",
            CAPTION,
        )
        .margin(10)
        .x_label_area_size(50)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..f64::from(deepest), 0.0..highest * 1.1)
        .map_err(cannot_draw())?;
    chart
        .configure_mesh()
        .x_desc("depth")
        .y_desc("ns")
        .y_label_formatter(&|ns| short(*ns))
        .x_label_formatter(&|depth| format!("{depth:.0}"))
        .label_style(TEXT)
        .light_line_style(WHITE)
        .draw()
        .map_err(cannot_draw())?;
    let mut names: Vec<String> = Vec::new();
    for row in rows {
        let label = label(row);
        if !names.contains(&label) {
            names.push(label);
        }
    }
    for (number, name) in names.iter().enumerate() {
        let colour = COLOURS
            .get(number % COLOURS.len())
            .copied()
            .unwrap_or(BLACK);
        let points: Vec<_> = rows
            .iter()
            .filter(|row| label(row) == *name)
            .filter_map(outer)
            .collect();
        let above = points.iter().map(|(depth, mean, by)| (*depth, mean + by));
        let below = points
            .iter()
            .map(|(depth, mean, by)| (*depth, (mean - by).max(0.0)));
        let band: Vec<_> = above
            .map(|(depth, ns)| (depth, ns.min(highest * 1.1)))
            .chain(below.rev())
            .collect();
        chart
            .draw_series(std::iter::once(Polygon::new(
                band,
                colour.mix(0.15).filled(),
            )))
            .map_err(cannot_draw())?;
        let line = points.iter().map(|(depth, mean, _)| (*depth, *mean));
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(2)))
            .map_err(cannot_draw())?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .label_font(TEXT)
        .draw()
        .map_err(cannot_draw())?;
    area.present().map_err(cannot_draw())
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
