//! Welch's test with trimmed means: Yuen's test of the batches of two processes (Biometrika 61,
//! 1974), and Tukey and McLaughlin's of the differences of a duet's pairs.
//!
//! An interrupted batch can be a hundred times as long as others. It would hide everything from
//! Welch's test. Without the lowest and the highest fifth only the typical batches count. With
//! normal noise this needs about an eighth more batches.

use baler_rig::statistics::{student, to_f64};

/// A difference of two versions, and whether the test takes it for real at 5 % false alarms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Difference {
    /// In nanoseconds a call, without its sign.
    pub(super) size: f64,
    pub(super) is_significant: bool,
}

impl Difference {
    fn new(mean: f64, squared_error: f64, degrees: f64) -> Self {
        Self {
            size: mean.abs(),
            // If there is no noise at all, each difference is real.
            is_significant: mean.abs() > student(degrees) * squared_error.sqrt(),
        }
    }

    /// Tests these differences of pairs.
    pub(super) fn of_pairs(differences: Vec<f64>) -> Self {
        let it = Trimmed::of(differences);
        Self::new(it.mean, it.squared_error, it.degrees)
    }

    /// Tests the batches of two versions.
    pub(super) fn of_separate(base: Vec<f64>, changed: Vec<f64>) -> Self {
        let [base, changed] = [base, changed].map(Trimmed::of);
        let squared_error = base.squared_error + changed.squared_error;
        let part = |it: &Trimmed| it.squared_error.powi(2) / it.degrees;
        let degrees = squared_error.powi(2) / (part(&base) + part(&changed));
        // Not a number without noise; then the degrees do not matter.
        let degrees = degrees.max(1.0);
        Self::new(changed.mean - base.mean, squared_error, degrees)
    }
}

/// The mean of values without their lowest and their highest fifth.
#[derive(Debug)]
struct Trimmed {
    mean: f64,
    /// By the variance of the winsorized values: the ends stand for the trimmed ones.
    squared_error: f64,
    degrees: f64,
}

impl Trimmed {
    /// There must be at least six values.
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let trimmed = values.len() / 5;
        let rest = &values[trimmed..values.len() - trimmed];
        let (ends, trimmed) = ([rest[0], rest[rest.len() - 1]], count(trimmed));
        let (all, left) = (count(values.len()), count(rest.len()));
        let sum: f64 = rest.iter().sum();
        let winsorized = (sum + trimmed * (ends[0] + ends[1])) / all;
        let square = |value: &f64| (value - winsorized).powi(2);
        let squares = rest.iter().map(square).sum::<f64>();
        let squares = squares + trimmed * ends.iter().map(square).sum::<f64>();
        Self {
            mean: sum / left,
            squared_error: squares / (left * (left - 1.0)),
            degrees: left - 1.0,
        }
    }
}

/// A number of items as a floating-point number.
pub(super) fn count(items: usize) -> f64 {
    to_f64(items as u64)
}

#[cfg(test)]
mod tests;
