//! Whether something grows: a straight line through measurements.

use serde::Serialize;

use crate::statistics::student;

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
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let count = crate::statistics::to_f64(u64::try_from(points.len()).ok()?);
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
    pub fn may_be_none(&self) -> bool {
        self.low <= 0.0 && 0.0 <= self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_slope_and_no_doubt() {
        let points = (0..10).map(|x| (f64::from(x), 3.0 + 2.0 * f64::from(x)));
        let slope = Slope::of(&points.collect::<Vec<_>>()).unwrap();
        assert!((slope.per_unit - 2.0).abs() < 1e-9);
        assert!(slope.high - slope.low < 1e-6 && !slope.may_be_none());
    }

    #[test]
    fn noise_without_a_slope_may_have_none() {
        let points: Vec<_> = (0..20)
            .map(|x| (f64::from(x), f64::from((x * 7) % 5)))
            .collect();
        assert!(Slope::of(&points).unwrap().may_be_none());
        let growing: Vec<_> = points.iter().map(|(x, y)| (*x, y + x)).collect();
        assert!(!Slope::of(&growing).unwrap().may_be_none());
    }

    #[test]
    fn the_interval_is_the_textbooks() {
        // x 1..5, y 2 4 5 4 5: slope 0.6, its standard error 0.2828, t(3) 3.182.
        let points = [(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 4.0), (5.0, 5.0)];
        let slope = Slope::of(&points).unwrap();
        assert!((slope.per_unit - 0.6).abs() < 1e-9);
        assert!((slope.high - 1.5).abs() < 1e-3, "{slope:?}");
        assert!((student(6.0) - 2.447).abs() < 0.0025 && (student(30.0) - 2.042).abs() < 0.002);
    }

    #[test]
    fn two_points_are_not_enough() {
        assert_eq!(Slope::of(&[(0.0, 0.0), (1.0, 1.0)]), None);
        assert_eq!(Slope::of(&[(1.0, 0.0), (1.0, 1.0), (1.0, 2.0)]), None);
    }
}
