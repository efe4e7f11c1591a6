//! Charts of measurements: lines with their bands, and bars.

use std::error::Error;

use plotters::coord::combinators::{BindKeyPoints as _, IntoLogRange as _};
use plotters::prelude::*;

use crate::harness::Failure;
use crate::numbers::short;

/// Width and height of a chart with lines, in pixels: its text can be read on a telephone.
const LINES: (u32, u32) = (480, 320);

/// Width of a chart with bars, in pixels.
const WIDTH: u32 = 960;

/// Height of a bar with the space around it, in pixels.
const BAR: u32 = 24;

/// Text size of axes and labels, in pixels; the drawn text is a little smaller.
const TEXT: (&str, u32) = ("sans-serif", 17);

/// The colour of marks, which are circles.
pub(crate) const MARK: &str = "#000000";

const GREY: RGBColor = RGBColor(110, 110, 110);

/// Colours of lines and bars that colour-blind people can distinguish (Okabe and Ito, "Color universal
/// design").
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// A point of a line: its position, its value, and the band around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Its position.
    pub x: f64,
    /// The lower end of the band, the value, and the upper end.
    pub low_mean_high: [f64; 3],
}

/// A line with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points, from the left.
    pub points: Vec<Point>,
}

impl Series {
    /// Adds a point to the line with this name, and creates the line if necessary.
    pub fn add(all: &mut Vec<Self>, name: String, point: Point) {
        match all.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => all.push(Self {
                name,
                points: vec![point],
            }),
        }
    }
}

/// The contents of a chart with lines.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    /// The name of the lower axis.
    pub x: &'a str,
    /// The lines.
    pub lines: &'a [Series],
    /// Values without a position, with their names.
    pub levels: &'a [(String, f64)],
    /// Points that are circled, with their names.
    pub marks: &'a [(String, f64, f64)],
}

impl<E: Error + Send + Sync> From<DrawingAreaErrorKind<E>> for Failure {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self::cannot("draw")(error)
    }
}

/// A drawn chart. The names are beside the picture, so that no name covers a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    /// The picture, as SVG.
    pub svg: String,
    /// The names of lines, levels and marks, with their colours.
    pub keys: Vec<(String, String)>,
}

/// Draws the chart, with logarithmic axes; `None` if there is no point.
///
/// # Errors
///
/// Drawing fails.
pub fn lines(it: &Lines<'_>) -> Result<Option<Chart>, Failure> {
    let Lines {
        x,
        lines,
        levels,
        marks,
    } = *it;
    let points = || lines.iter().flat_map(|line| &line.points);
    let values = || {
        let means = points().map(|point| point.low_mean_high[1]);
        means.chain(levels.iter().map(|(_, value)| *value))
    };
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::MIN_POSITIVE), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    };
    let (first, last) = ends(&mut points().map(|point| point.x));
    let (low, high) = ends(&mut values());
    if !first.is_finite() {
        return Ok(None);
    }
    let [left, right, bottom, top] = [first / 1.25, last * 1.25, low / 1.6, high * 1.6];
    let (mut out, mut keys) = (String::new(), Vec::new());
    let area = SVGBackend::with_string(&mut out, LINES).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(10)
        .x_label_area_size(45)
        .y_label_area_size(60)
        .build_cartesian_2d(
            (left..right).log_scale().base(2.0),
            (bottom..top)
                .log_scale()
                .with_key_points(ticks(bottom, top)),
        )?;
    chart
        .configure_mesh()
        .x_desc(x)
        .x_labels(8)
        .x_label_formatter(&|value| format!("{value:.0}"))
        .y_label_formatter(&|value| short(*value))
        .label_style(TEXT)
        .axis_desc_style(TEXT)
        .light_line_style(WHITE)
        .draw()?;
    let mut colours = COLOURS.iter().cycle().copied();
    for (line, colour) in lines.iter().zip(&mut colours) {
        keys.push((line.name.clone(), hexadecimal(colour)));
        // The band may reach beyond the picture, and below 0, where a logarithm is not defined.
        let end = |point: &Point, end: f64| (point.x, end.clamp(bottom, top));
        let upper = line.points.iter();
        let upper = upper.map(|point| end(point, point.low_mean_high[2]));
        let lower = line.points.iter().rev();
        let lower = lower.map(|point| end(point, point.low_mean_high[0]));
        let band: Vec<(f64, f64)> = upper.chain(lower).collect();
        chart.draw_series([Polygon::new(band, colour.mix(0.2).filled())])?;
        let means = line.points.iter();
        let means: Vec<(f64, f64)> = means
            .map(|point| (point.x, point.low_mean_high[1]))
            .collect();
        let stroke = colour.stroke_width(2);
        chart.draw_series([PathElement::new(means.clone(), stroke)])?;
        let dots = means.iter();
        chart.draw_series(dots.map(|point| Circle::new(*point, 3, colour.filled())))?;
    }
    for ((name, value), colour) in levels.iter().zip(&mut colours) {
        keys.push((name.clone(), hexadecimal(colour)));
        let level = vec![(left, *value), (right, *value)];
        chart.draw_series([PathElement::new(level, colour.stroke_width(1))])?;
    }
    for (name, x, value) in marks {
        keys.push((name.clone(), MARK.to_owned()));
        let at = (*x, value.clamp(bottom, top));
        chart.draw_series([Circle::new(at, 8, BLACK.stroke_width(2))])?;
    }
    area.present()?;
    drop(chart);
    drop(area);
    Ok(Some(Chart { svg: out, keys }))
}

fn hexadecimal(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// A bar: its name, its length, the line from the first to the third quartile, and whether the
/// others are compared with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// The first and the third quartile.
    pub quartiles: [f64; 2],
    /// Whether others are compared with it.
    pub is_control: bool,
}

/// Bars as SVG, on a logarithmic scale from a half.
///
/// # Errors
///
/// Drawing fails.
pub fn bars(bars: &[Bar]) -> Result<String, Failure> {
    let mut out = String::new();
    let count = u32::try_from(bars.len()).expect("a chart has some bars");
    let size = (WIDTH, count * BAR + 60);
    let area = SVGBackend::with_string(&mut out, size).into_drawing_area();
    area.fill(&WHITE)?;
    let right_of = |bar: &Bar| bar.value.max(bar.quartiles[1]);
    let largest = bars.iter().map(right_of).fold(1.0, f64::max);
    let end = f64::from(count);
    let mut chart = ChartBuilder::on(&area)
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(215)
        .build_cartesian_2d((0.5..largest * 2.0).log_scale(), end..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(8)
        .x_label_formatter(&|value| short(*value))
        .label_style(TEXT)
        .light_line_style(WHITE)
        .draw()?;
    for (top, bar) in (0_u32..).zip(bars) {
        let top = f64::from(top);
        let colour = if bar.is_control { GREY } else { COLOURS[0] };
        let corners = [(0.5, top + 0.15), (bar.value, top + 0.85)];
        chart.draw_series([Rectangle::new(corners, colour.filled())])?;
        let quartiles = bar.quartiles.map(|quartile| (quartile, top + 0.5));
        chart.draw_series([PathElement::new(quartiles.to_vec(), BLACK.stroke_width(2))])?;
        let at = (right_of(bar) * 1.05, top + 0.15);
        chart.draw_series([Text::new(short(bar.value), at, TEXT)])?;
        let (_, y) = chart.backend_coord(&(0.5, top + 0.15));
        area.draw(&Text::new(bar.name.clone(), (12, y), TEXT))?;
    }
    area.present()?;
    drop(chart);
    drop(area);
    Ok(out)
}

/// Returns a handful of round numbers between two others.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let within = |mantissas: &[f64]| -> Vec<f64> {
        let decades = (-30..30).map(|power| 10_f64.powi(power));
        decades
            .flat_map(|decade| mantissas.iter().map(move |mantissa| mantissa * decade))
            .filter(|tick| (low..=high).contains(tick))
            .collect()
    };
    let few = within(&[1.0, 2.0, 5.0]);
    match few.len() {
        0..4 => within(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]),
        4..12 => few,
        _ => within(&[1.0]),
    }
}

#[cfg(test)]
mod tests;
