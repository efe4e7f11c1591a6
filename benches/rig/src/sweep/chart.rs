//! Cells as pictures: a figure over the chunk size, with its confidence band.

use super::case::Way;
use super::cell::{Cell, Interval};
use super::recommend::Recommendation;
use crate::chart::{Lines, Point, Series, lines};
use crate::failure::Failure;
use crate::report::short;

/// What a chart shows of a cell.
pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) of: fn(&Cell) -> Option<Interval>,
    /// What the recommendation says of it.
    pub(super) expected: fn(&Recommendation) -> f64,
}

pub(super) const FIGURES: [Figure; 3] = [
    Figure {
        title: "CPU seconds a second of the writing process",
        of: |cell| cell.writer_cpu_seconds_per_second,
        expected: |it| it.expected.writer_cpu_seconds_per_second,
    },
    Figure {
        title: "Bytes a second on the wire, both ways",
        of: |cell| cell.wire_bytes_per_second,
        expected: |it| it.expected.wire_bytes_per_second,
    },
    Figure {
        title: "Latency, 99th percentile, in milliseconds",
        of: |cell| cell.latency_ms_p99,
        expected: |it| it.expected.latency_ms_p99,
    },
];

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
    let rate = |cell: &Cell| cell.case.rate.map_or_else(|| "max".to_owned(), short);
    let levels: Vec<(String, f64)> = cells
        .iter()
        .filter(|cell| cell.case.chunk_records.is_none() && !cell.saturated)
        .filter_map(|cell| {
            let name = format!("{}, {}/s", cell.case.way.name(), rate(cell));
            Some((name, (figure.of)(cell)?.mean))
        })
        .filter(|(_, mean)| *mean > 0.0)
        .collect();
    let marks: Vec<(String, f64, f64)> = recommended
        .iter()
        .map(|one| {
            let size = f64::from(one.expected.chunk_records);
            (
                format!("recommended: {size:.0}"),
                size,
                (figure.expected)(one),
            )
        })
        .collect();
    lines(&Lines {
        title: figure.title,
        x: "records a chunk",
        lines: &series(figure, cells),
        levels: &levels,
        marks: &marks,
    })
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
        let point = Point {
            x: f64::from(size),
            low_mean_high: [interval.low, interval.mean, interval.high],
        };
        Series::add(&mut all, name, point);
    }
    for line in &mut all {
        line.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    all
}
