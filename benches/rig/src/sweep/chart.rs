//! Cells as pictures: a figure over the chunk size, with its confidence band.

use plotters::coord::combinators::{BindKeyPoints as _, IntoLogRange as _};
use plotters::prelude::*;

use super::case::Way;
use super::cell::{Cell, Interval};
use super::recommend::Recommendation;
use crate::colours::COLOURS;
use crate::failure::Failure;
use crate::report::short;

/// Size of a chart, in pixels.
const SIZE: (u32, u32) = (960, 460);

/// Text of axes and labels, in pixels; a little less is drawn.
const TEXT: (&str, u32) = ("sans-serif", 17);

/// Text above the chart.
const CAPTION: (&str, u32) = ("sans-serif", 21);

const RIVAL: RGBColor = RGBColor(110, 110, 110);

/// What a chart shows of a cell.
pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) of: fn(&Cell) -> Option<Interval>,
    /// What the recommendation says of it.
    pub(super) expected: fn(&Recommendation) -> f64,
    /// Whether the rivals are shown as levels.
    pub(super) rivals: bool,
}

pub(super) const FIGURES: [Figure; 3] = [
    Figure {
        title: "CPU seconds a second of the writing process",
        of: |cell| cell.writer_cpu_seconds_per_second,
        expected: |it| it.expected.writer_cpu_seconds_per_second,
        rivals: true,
    },
    Figure {
        title: "Bytes a second on the wire, both ways",
        of: |cell| cell.wire_bytes_per_second,
        expected: |it| it.expected.wire_bytes_per_second,
        rivals: true,
    },
    Figure {
        title: "Latency, 99th percentile, in milliseconds",
        of: |cell| cell.latency_ms_p99,
        expected: |it| it.expected.latency_ms_p99,
        rivals: true,
    },
];

/// A line: its name, and size, mean and interval of each of its points.
struct Series {
    name: String,
    points: Vec<(f64, Interval)>,
}

/// The chart of a figure, as SVG; nothing where no cell has it.
///
/// # Errors
///
/// Drawing fails.
pub(super) fn svg(
    figure: &Figure,
    cells: &[Cell],
    recommended: &[Recommendation],
) -> Result<Option<String>, Failure> {
    let lines = series(figure, cells);
    let levels: Vec<(String, Interval)> = cells
        .iter()
        .filter(|cell| figure.rivals && cell.case.way.is_plain() && !cell.saturated)
        .filter_map(|cell| {
            let rate = cell.case.rate.map_or_else(|| "max".to_owned(), short);
            Some((
                format!("{}, {rate}/s", cell.case.way.name()),
                (figure.of)(cell)?,
            ))
        })
        .filter(|(_, interval)| interval.mean > 0.0)
        .collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let values = || {
        let means = points().map(|(_, interval)| interval.mean);
        means.chain(levels.iter().map(|(_, interval)| interval.mean))
    };
    let sizes = || points().map(|(size, _)| *size);
    let (least, most) = (
        sizes().fold(f64::INFINITY, f64::min),
        sizes().fold(1.0, f64::max),
    );
    let (low, high) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    if !low.is_finite() || !least.is_finite() {
        return Ok(None);
    }
    let marks: Vec<(f64, f64)> = recommended
        .iter()
        .map(|one| {
            let measured = cells.iter().find(|cell| one.is_of(&cell.case));
            let measured = measured.and_then(figure.of).map(|interval| interval.mean);
            let value = measured.unwrap_or_else(|| (figure.expected)(one));
            (f64::from(one.expected.chunk_records), value)
        })
        .collect();
    let mut out = String::new();
    draw(
        figure,
        &lines,
        &levels,
        &marks,
        [least / 1.25, most * 1.25, low / 1.6, high * 1.6],
        &mut out,
    )?;
    Ok(Some(out))
}

fn draw(
    figure: &Figure,
    lines: &[Series],
    levels: &[(String, Interval)],
    marks: &[(f64, f64)],
    [left, right, bottom, top]: [f64; 4],
    out: &mut String,
) -> Result<(), Failure> {
    let failed = || Failure::cannot("draw");
    let area = SVGBackend::with_string(out, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(failed())?;
    let mut chart = ChartBuilder::on(&area)
        .caption(figure.title, CAPTION)
        .margin(10)
        .x_label_area_size(50)
        .y_label_area_size(80)
        .build_cartesian_2d(
            (left..right).log_scale().base(2.0),
            (bottom..top)
                .log_scale()
                .with_key_points(ticks(bottom, top)),
        )
        .map_err(failed())?;
    chart
        .configure_mesh()
        .x_desc("records a chunk")
        .x_labels(12)
        .x_label_formatter(&|size| format!("{size:.0}"))
        .y_label_formatter(&|value| short(*value))
        .label_style(TEXT)
        .axis_desc_style(TEXT)
        .light_line_style(WHITE)
        .draw()
        .map_err(failed())?;
    for (line, colour) in lines.iter().zip(COLOURS.iter().skip(1).cycle().copied()) {
        // The band may reach beyond the picture, and below 0, where a logarithm has no place.
        let bound = |value: f64| value.clamp(bottom, top);
        let upper = line.points.iter().map(|(size, it)| (*size, bound(it.high)));
        let lower = line
            .points
            .iter()
            .rev()
            .map(|(size, it)| (*size, bound(it.low)));
        let band: Vec<(f64, f64)> = upper.chain(lower).collect();
        chart
            .draw_series([Polygon::new(band, colour.mix(0.2).filled())])
            .map_err(failed())?;
        let means: Vec<(f64, f64)> = line
            .points
            .iter()
            .map(|(size, it)| (*size, it.mean))
            .collect();
        let stroke = colour.stroke_width(2);
        chart
            .draw_series([PathElement::new(means.clone(), stroke)])
            .map_err(failed())?
            .label(line.name.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], stroke));
        chart
            .draw_series(
                means
                    .iter()
                    .map(|point| Circle::new(*point, 3, colour.filled())),
            )
            .map_err(failed())?;
    }
    for (name, interval) in levels {
        let level = vec![(left, interval.mean), (right, interval.mean)];
        chart
            .draw_series([PathElement::new(level, RIVAL.stroke_width(1))])
            .map_err(failed())?;
        let at = (left * 1.05, interval.mean);
        chart
            .draw_series([EmptyElement::at(at) + Text::new(name.clone(), (4, -20), TEXT)])
            .map_err(failed())?;
    }
    for (size, value) in marks {
        let at = (*size, value.clamp(bottom, top));
        let label = format!("recommended: {size:.0}");
        chart
            .draw_series([EmptyElement::at(at)
                + Circle::new((0, 0), 8, BLACK.stroke_width(2))
                + Text::new(label, (-150, -28), TEXT)])
            .map_err(failed())?;
    }
    if lines.len() > 1 {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .border_style(RIVAL)
            .label_font(TEXT)
            .draw()
            .map_err(failed())?;
    }
    area.present().map_err(failed())
}

/// Round numbers between two others, a handful.
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

/// One line for all cells that differ in nothing but the size.
fn series(figure: &Figure, cells: &[Cell]) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.case.way == Way::Baler) {
        let (Some(size), Some(interval)) = (cell.case.chunk_records, (figure.of)(cell)) else {
            continue;
        };
        if interval.mean <= 0.0 {
            continue;
        }
        let case = &cell.case;
        let name = format!(
            "{}/s, {}{}, {} ms, {} reading",
            case.rate.map_or_else(|| "max".to_owned(), short),
            case.compression.as_deref().unwrap_or("-"),
            match case.string_table {
                Some(false) => ", strings spelled",
                _ => "",
            },
            case.wait_time_ms.map_or_else(|| "-".to_owned(), short),
            case.consumers
        );
        let point = (f64::from(size), interval);
        match all.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => all.push(Series {
                name,
                points: vec![point],
            }),
        }
    }
    for line in &mut all {
        line.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn axes_have_a_handful_of_round_numbers() {
        assert_eq!(ticks(11.0, 210.0), [20.0, 50.0, 100.0, 200.0]);
        assert_eq!(ticks(30.0, 55.0), [30.0, 40.0, 50.0]);
        assert_eq!(ticks(0.5, 5e6), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
    }
}
