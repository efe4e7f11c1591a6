//! Bars of measurements as a picture.

use plotters::coord::combinators::IntoLogRange as _;
use plotters::prelude::*;

use crate::harness::Failure;
use crate::report::short;

/// Width of a chart, in pixels.
const WIDTH: u32 = 960;

/// Height of a bar with the space around it, in pixels.
const BAR: u32 = 24;

/// Text of axes and labels, in pixels; a little less is drawn.
const TEXT: (&str, u32) = ("sans-serif", 17);

const GREY: RGBColor = RGBColor(110, 110, 110);

const BLUE: RGBColor = RGBColor(0, 114, 178);

fn failed<E: std::fmt::Display>() -> impl Fn(E) -> Failure {
    Failure::cannot("draw")
}

/// A bar: its name, its length, the line from the first to the third quartile, and whether it is what
/// the others stand beside.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// The first and the third quartile.
    pub quartiles: [f64; 2],
    /// Whether it is what others are compared with.
    pub is_control: bool,
}

/// Bars as SVG, on a logarithmic scale from a half.
///
/// # Errors
///
/// Drawing fails.
pub fn bars(bars: &[Bar]) -> Result<String, Failure> {
    let mut out = String::new();
    let count = u32::try_from(bars.len()).unwrap_or(u32::MAX);
    let size = (WIDTH, count.saturating_mul(BAR) + 60);
    let area = SVGBackend::with_string(&mut out, size).into_drawing_area();
    area.fill(&WHITE).map_err(failed())?;
    let right_of = |bar: &Bar| bar.value.max(bar.quartiles[1]);
    let largest = bars.iter().map(right_of).fold(1.0, f64::max);
    let end = f64::from(count);
    let mut chart = ChartBuilder::on(&area)
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(215)
        .build_cartesian_2d((0.5..largest * 2.0).log_scale(), end..0.0)
        .map_err(failed())?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(8)
        .x_label_formatter(&|value| short(*value))
        .label_style(TEXT)
        .light_line_style(WHITE)
        .draw()
        .map_err(failed())?;
    for (top, bar) in (0_u32..).zip(bars) {
        let top = f64::from(top);
        let colour = if bar.is_control { GREY } else { BLUE };
        let corners = [(0.5, top + 0.15), (bar.value, top + 0.85)];
        chart
            .draw_series([Rectangle::new(corners, colour.filled())])
            .map_err(failed())?;
        let quartiles = bar.quartiles.map(|quartile| (quartile, top + 0.5));
        chart
            .draw_series([PathElement::new(quartiles.to_vec(), BLACK.stroke_width(2))])
            .map_err(failed())?;
        let at = (right_of(bar) * 1.05, top + 0.15);
        chart
            .draw_series([Text::new(short(bar.value), at, TEXT)])
            .map_err(failed())?;
        let (_, y) = chart.backend_coord(&(0.5, top + 0.15));
        area.draw(&Text::new(bar.name.clone(), (12, y), TEXT))
            .map_err(failed())?;
    }
    area.present().map_err(failed())?;
    drop(chart);
    drop(area);
    Ok(out)
}
