//! The figures of a medium afterwards.

use baler_rig::report::{self, Column, short, short_or_dash, yes_or_no};
use baler_rig::statistics::{Distribution, student, to_f64};
use baler_rig::usage::Footprint;
use serde::Serialize;

use super::Args;
use super::endurance::{Endured, Sample};
use super::medium::Medium;

/// One figure of one end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The medium between the ends.
    pub medium: &'static str,
    /// `writer` or `reader`.
    pub end: &'static str,
    /// `resident_bytes`, `descriptors` or `threads`.
    pub figure: &'static str,
    /// Its minimum in the first stretch after the warm-up, from a restart to the next: a leak raises it,
    /// and an outage does not.
    pub first: f64,
    /// Its minimum in the last stretch.
    pub last: f64,
    /// Its smallest and largest sample after the warm-up.
    pub range: [f64; 2],
    /// Change a minute: the regression of the minima of all stretches.
    pub slope_per_minute: Option<Slope>,
    /// Whether the slope may be zero, or an hour of it would be less than a hundredth of the figure.
    pub steady: bool,
    /// Restarts of the medium.
    pub restarts: u64,
    /// Records emitted.
    pub records: u64,
    /// Records that never arrived.
    pub missing: u64,
    /// Copies that the medium delivered.
    pub copies: u64,
    /// Whether the writer's account adds up and nothing is missing.
    pub complete: bool,
    /// From the medium's return to the first chunk, over all restarts.
    pub first_ms: Option<Times>,
    /// From the medium's return to the first record that was emitted after it.
    pub fresh_ms: Option<Times>,
}

/// Quantiles of the times of many restarts, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// How many restarts.
    pub count: usize,
    /// Half of them are shorter.
    pub p50: f64,
    /// 99 of 100 are shorter.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Times {
    fn of(times: &[f64]) -> Option<Self> {
        let sorted = Distribution::of(times.iter().copied());
        Some(Self {
            count: times.len(),
            p50: sorted.quantile(0.5)?,
            p99: sorted.quantile(0.99)?,
            max: sorted.quantile(1.0)?,
        })
    }
}

/// A slope is negligible if an hour of it is at most this part of the figure.
const NEGLIGIBLE_AN_HOUR: f64 = 0.01;

type Figure = (&'static str, fn(&Footprint) -> u64);

const FIGURES: [Figure; 3] = [
    ("resident_bytes", |footprint| footprint.resident_bytes),
    ("descriptors", |footprint| footprint.descriptors),
    ("threads", |footprint| footprint.threads),
];

type End = (&'static str, fn(&Sample) -> &Footprint);

const ENDS: [End; 2] = [
    ("writer", |sample| &sample.writer),
    ("reader", |sample| &sample.reader),
];

/// Every figure of both ends.
pub(super) fn rows(medium: Medium, args: &Args, endured: &Endured) -> Vec<Row> {
    let mut rows = Vec::new();
    for (end, of_end) in ENDS {
        for (figure, value) in FIGURES {
            let series = endured.samples.iter();
            let series: Vec<(f64, f64)> = series
                .map(|sample| (sample.seconds, to_f64(value(of_end(sample)))))
                .collect();
            let stretches = stretches(&series, args);
            let slope = Slope::of(&stretches);
            let warm = args.restart_every().as_secs_f64() * f64::from(args.warm_up);
            let after = series.iter().filter(|(seconds, _)| *seconds >= warm);
            let (mut low, mut high) = (f64::MAX, f64::MIN);
            for (_, value) in after {
                (low, high) = (low.min(*value), high.max(*value));
            }
            let last = stretches.last().map_or(0.0, |(_, least)| *least);
            let steady = slope.is_some_and(|slope| {
                slope.may_be_none() || slope.per_unit.abs() * 60.0 <= NEGLIGIBLE_AN_HOUR * last
            });
            rows.push(Row {
                medium: medium.name(),
                end,
                figure,
                first: stretches.first().map_or(0.0, |(_, least)| *least),
                last,
                range: [low, high],
                slope_per_minute: slope,
                steady,
                restarts: endured.restarts,
                records: endured.sent.emitted,
                missing: endured.read.missing,
                copies: endured.read.repeated,
                complete: endured.sent.complete
                    && endured.read.missing == 0
                    && endured.read.impossible == 0,
                first_ms: Times::of(&endured.read.first_ms),
                fresh_ms: Times::of(&endured.read.fresh_ms),
            });
        }
    }
    rows
}

/// The minima of the stretches from one restart to the next after the warm-up, by their middle in
/// minutes. Samples of one stretch depend on each other, and an outage holds chunks in memory; a leak
/// adds to what is held after it.
fn stretches(series: &[(f64, f64)], args: &Args) -> Vec<(f64, f64)> {
    let length = args.restart_every().as_secs_f64();
    let mut least = Vec::new();
    for number in args.warm_up.. {
        let begin = f64::from(number) * length;
        if begin + length > args.duration().as_secs_f64() + 1.0 {
            break;
        }
        let own = series
            .iter()
            .filter(|(seconds, _)| (begin..begin + length).contains(seconds));
        if let Some(value) = own.map(|(_, value)| *value).min_by(f64::total_cmp) {
            least.push(((begin + length / 2.0) / 60.0, value));
        }
    }
    least
}

const COLUMNS: &[Column<Row>] = &[
    Column::text("medium", |row| row.medium.to_owned()),
    Column::text("end", |row| row.end.to_owned()),
    Column::text("figure", |row| row.figure.to_owned()),
    Column::number("first", |row| short(row.first)),
    Column::number("last", |row| short(row.last)),
    Column::number("min", |row| short(row.range[0])),
    Column::number("max", |row| short(row.range[1])),
    Column::number("slope/min", |row| slope(row, |slope| slope.per_unit)),
    Column::number("95 % from", |row| slope(row, |slope| slope.low)),
    Column::number("to", |row| slope(row, |slope| slope.high)),
    Column::text("steady", |row| yes_or_no(row.steady)),
    Column::text("complete", |row| yes_or_no(row.complete)),
];

fn slope(row: &Row, part: fn(&Slope) -> f64) -> String {
    short_or_dash(row.slope_per_minute.as_ref().map(part))
}

/// The rows within 100 columns.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text = report::table(rows, COLUMNS);
    let mut last = "";
    for row in rows {
        if row.medium != last {
            last = row.medium;
            let Row {
                medium,
                restarts,
                records,
                missing,
                copies,
                ..
            } = row;
            text.push_str(&format!(
                "{medium}: {restarts} restarts, {records} records, {missing} missing, \
                 {copies} copies\n"
            ));
            for (what, times) in [("chunk", row.first_ms), ("new record", row.fresh_ms)] {
                if let Some(Times { p50, p99, max, .. }) = times {
                    text.push_str(&format!(
                        "  first {what} after a restart: p50 {p50:.0} ms, p99 {p99:.0} ms, at most \
                         {max:.0} ms\n"
                    ));
                }
            }
        }
    }
    text
}

/// The slope of the straight line through points, by least squares, with its 95 % confidence
/// interval.
///
/// The interval holds for errors that are independent of each other: of samples taken in quick
/// succession regress the means of longer stretches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slope {
    /// Change of y for each unit of x.
    pub per_unit: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Slope {
    /// That of these points (x, y); `None` if there are fewer than three, or all have one x.
    fn of(points: &[(f64, f64)]) -> Option<Self> {
        let count = to_f64(u64::try_from(points.len()).ok()?);
        if points.len() < 3 {
            return None;
        }
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
        let sum = |term: &dyn Fn(f64, f64) -> f64| {
            let terms = points.iter().map(|(x, y)| term(x - mean_x, y - mean_y));
            terms.sum::<f64>()
        };
        let (xx, xy) = (sum(&|x, _| x * x), sum(&|x, y| x * y));
        if xx <= 0.0 {
            return None;
        }
        let per_unit = xy / xx;
        let degrees = count - 2.0;
        let rest = sum(&|x, y| (y - per_unit * x).powi(2));
        let margin = student(degrees) * (rest / degrees / xx).sqrt();
        Some(Self {
            per_unit,
            low: per_unit - margin,
            high: per_unit + margin,
        })
    }

    /// Whether the points may as well have no slope.
    fn may_be_none(&self) -> bool {
        self.low <= 0.0 && 0.0 <= self.high
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::ends::{Read, Sent};
    use super::*;

    fn endured(growth: u64) -> Endured {
        let sample = |second: u64| {
            let footprint = |resident_bytes| Footprint {
                resident_bytes,
                descriptors: 10 + second % 3,
                threads: 4,
            };
            Sample {
                seconds: to_f64(second),
                writer: footprint(10_000_000 + second * growth),
                reader: footprint(20_000_000 + (second * 7_919) % 10_000),
            }
        };
        Endured {
            samples: (0..600).map(sample).collect(),
            restarts: 10,
            sent: Sent {
                emitted: 100,
                complete: true,
            },
            read: Read {
                repeated: 3,
                missing: 0,
                impossible: 0,
                first_ms: vec![3.0, 1.0, 2.0],
                fresh_ms: Vec::new(),
            },
        }
    }

    #[test]
    fn growth_is_told_from_noise() {
        let args = Args::parse_from(["soak", "--seconds", "600"]);
        let of = |growth: u64| rows(Medium::Tcp, &args, &endured(growth));
        for row in of(0) {
            assert!(row.steady && row.complete, "{row:?}");
        }
        let grown = of(100);
        let writer = grown.iter().find(|row| row.end == "writer").unwrap();
        let slope = writer.slope_per_minute.unwrap();
        assert!(
            (slope.per_unit - 6_000.0).abs() < 1.0 && !writer.steady,
            "{writer:?}"
        );
        assert!(grown.iter().filter(|row| !row.steady).count() == 1);
    }

    #[test]
    fn the_table_says_what_was_lost() {
        let args = Args::parse_from(["soak", "--seconds", "600"]);
        let mut endured = endured(0);
        endured.read.missing = 5;
        let text = table(&rows(Medium::File, &args, &endured));
        assert!(text.contains("NO") && text.contains("5 missing"), "{text}");
        assert!(
            text.contains("first chunk after a restart: p50 2 ms, p99 3 ms"),
            "{text}"
        );
        assert!(!text.contains("new record"), "{text}");
    }

    #[test]
    fn the_interval_of_a_slope_is_the_textbooks() {
        // x 1..5, y 2 4 5 4 5: slope 0.6, its standard error 0.2828, t(3) 3.182.
        let points = [(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 4.0), (5.0, 5.0)];
        let slope = Slope::of(&points).unwrap();
        assert!((slope.per_unit - 0.6).abs() < 1e-9);
        assert!((slope.high - 1.5).abs() < 1e-3, "{slope:?}");
        assert_eq!(Slope::of(&points[..2]), None);
        assert_eq!(Slope::of(&[(1.0, 0.0), (1.0, 1.0), (1.0, 2.0)]), None);
    }
}
