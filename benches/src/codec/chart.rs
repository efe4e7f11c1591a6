//! Rows as pictures: what is measured over the records a chunk, one line a format.

use baler_rig::colours::COLOURS;
use baler_rig::machine::Provenance;
use baler_rig::page;
use baler_rig::report::short;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::row::Row;
use crate::failure::Failure;

/// Width of the picture, in pixels; it has three charts side by side.
const WIDTH: u32 = 1_440;

/// Height of a chart, in pixels.
const HEIGHT: u32 = 420;

const TEXT: (&str, u32) = ("sans-serif", 15);

const CAPTION: (&str, u32) = ("sans-serif", 18);

/// What a chart shows of a row.
type Figure = (&'static str, fn(&Row) -> Option<f64>);

const FIGURES: [Figure; 3] = [
    ("bytes per record", |row| row.bytes_per_record),
    ("encoding, ns per record", |row| row.encode_ns),
    ("decoding, ns per record", |row| row.decode_ns),
];

/// Charts of these rows, as SVG: for each compression bytes, encoding and decoding.
///
/// Of a format with and without a string table the one with it is drawn.
///
/// # Errors
///
/// Drawing fails, or there is nothing to draw.
pub(super) fn svg(rows: &[Row]) -> Result<String, Failure> {
    let mut compressions: Vec<&str> = Vec::new();
    for row in rows {
        if !compressions.contains(&row.compression.as_str()) {
            compressions.push(&row.compression);
        }
    }
    let count = u32::try_from(compressions.len()).map_err(cannot_draw())?;
    if count == 0 {
        return Err(Failure::new("there is no row"));
    }
    let mut out = String::new();
    {
        let area = SVGBackend::with_string(&mut out, (WIDTH, HEIGHT * count)).into_drawing_area();
        area.fill(&WHITE).map_err(cannot_draw())?;
        let areas = area.split_evenly((compressions.len(), FIGURES.len()));
        let charts = compressions
            .iter()
            .flat_map(|compression| FIGURES.map(|figure| (*compression, figure)));
        for (area, (compression, figure)) in areas.iter().zip(charts) {
            chart(rows, compression, figure, area)?;
        }
        area.present().map_err(cannot_draw())?;
    }
    Ok(out)
}

fn cannot_draw<E: std::fmt::Display>() -> impl Fn(E) -> Failure {
    Failure::cannot("draw")
}

/// The rows that are drawn with this compression.
fn drawn<'a>(rows: &'a [Row], compression: &'a str) -> impl Iterator<Item = &'a Row> {
    let has_table = |codec: &str| {
        let mut all = rows.iter();
        all.any(|row| row.codec == codec && row.string_table)
    };
    let with = rows
        .iter()
        .filter(move |row| row.compression == compression);
    with.filter(move |row| row.string_table || !has_table(row.codec))
}

fn chart(
    rows: &[Row],
    compression: &str,
    (name, figure): Figure,
    area: &DrawingArea<SVGBackend<'_>, Shift>,
) -> Result<(), Failure> {
    let points: Vec<_> = drawn(rows, compression)
        .filter_map(|row| {
            let records = u32::try_from(row.chunk_records).ok()?;
            Some((row.codec, f64::from(records), figure(row)?))
        })
        .collect();
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    };
    let (least, most) = ends(&mut points.iter().map(|(_, records, _)| *records));
    let (lowest, highest) = ends(&mut points.iter().map(|(_, _, value)| *value));
    if points.is_empty() {
        return Ok(());
    }
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{name}, {compression}"), CAPTION)
        .margin(8)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(
            (least * 0.9..most * 1.2).log_scale(),
            (lowest * 0.8..highest * 1.3).log_scale(),
        )
        .map_err(cannot_draw())?;
    chart
        .configure_mesh()
        .x_desc("records a chunk")
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| short(*value))
        .label_style(TEXT)
        .light_line_style(WHITE)
        .draw()
        .map_err(cannot_draw())?;
    let mut names: Vec<&str> = Vec::new();
    for (codec, _, _) in &points {
        if !names.contains(codec) {
            names.push(codec);
        }
    }
    for (name, colour) in names.iter().zip(COLOURS.iter().cycle()) {
        let width = if *name == "columnar" { 3 } else { 2 };
        let line = points.iter().filter(|(codec, _, _)| codec == name);
        let line = line.map(|(_, records, value)| (*records, *value));
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(width)))
            .map_err(cannot_draw())?
            .label(*name)
            .legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(width))
            });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .label_font(TEXT)
        .draw()
        .map_err(cannot_draw())
}

/// One page of HTML that holds the charts, the table and where they come from, and loads nothing.
///
/// # Errors
///
/// As [`svg`].
pub(super) fn page(rows: &[Row], table: &str, provenance: &Provenance) -> Result<String, Failure> {
    let heading = "What a record takes, in bytes and nanoseconds";
    Ok(page::page("Codec", heading, &svg(rows)?, table, provenance))
}
