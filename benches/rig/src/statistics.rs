//! Means, quantiles, confidence intervals and fits of many measurements.

use serde::Serialize;

/// A mean with its 95 % confidence interval (Student's).
///
/// The interval is valid for values that do not depend on each other, such as repetitions in
/// processes of their own. Measurements in quick succession do depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The start of the interval.
    pub low: f64,
    /// The end of the interval. A single value has no interval: all three are the same.
    pub high: f64,
}

impl Interval {
    /// Computes the interval of these values; `None` if there is none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let (mean, deviation) = mean_and_deviation(values)?;
        let count = to_f64(values.len() as u64);
        let margin = match values.len() {
            1 => 0.0,
            _ => student(count - 1.0) * deviation / count.sqrt(),
        };
        Some(Self {
            mean,
            low: mean - margin,
            high: mean + margin,
        })
    }

    /// The ratio of two means of values that were measured in pairs. An influence on both values of
    /// a pair cancels out (the ratio estimator of Cochran, "Sampling Techniques", chapter 6).
    /// `None` if there is no pair, or the divisor is 0.
    pub fn of_ratio(above: &[f64], below: &[f64]) -> Option<Self> {
        let pairs: Vec<(f64, f64)> = above.iter().copied().zip(below.iter().copied()).collect();
        let (above, below): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (above, _) = mean_and_deviation(&above)?;
        let (below, _) = mean_and_deviation(&below)?;
        let mean = above / below;
        let rest: Vec<f64> = pairs.iter().map(|(a, b)| a - mean * b).collect();
        let margin = Self::of(&rest)?.margin() / below;
        (below > 0.0).then_some(Self {
            mean,
            low: mean - margin,
            high: mean + margin,
        })
    }

    /// Subtracts this from the mean and both ends, but not below 0.
    #[must_use]
    pub fn less(self, load: f64) -> Self {
        Self {
            mean: (self.mean - load).max(0.0),
            low: (self.low - load).max(0.0),
            high: (self.high - load).max(0.0),
        }
    }

    /// The distance from the mean to either end.
    pub fn margin(&self) -> f64 {
        self.high - self.mean
    }
}

/// Many values, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Distribution(Vec<f64>);

impl Distribution {
    /// Sorts the values and leaves out those that are not a number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// Returns the value that this share of all does not exceed, interpolated between its
    /// neighbours (type 7 of Hyndman and Fan 1996, the default of R); `None` if there is no value.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        let position = share.clamp(0.0, 1.0) * to_f64(last as u64);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the last index"
        )]
        let below = position as usize;
        let low = self.0[below];
        let high = self.0.get(below + 1).copied().unwrap_or(low);
        Some(low + (high - low) * position.fract())
    }
}

/// The mean and the standard deviation of a sample, which is 0 for a single value; `None` if there
/// is none.
fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let count = to_f64(values.len() as u64);
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, (squares / (count - 1.0).max(1.0)).sqrt()))
}

/// One equation of a fit: the columns, each multiplied by its factor, add up to the sum.
pub(crate) struct Equation {
    pub(crate) columns: Vec<f64>,
    pub(crate) sum: f64,
    /// The value to which its error is relative.
    pub(crate) scale: f64,
}

/// Finds the factors with the least sum of squared errors; none of them is negative.
///
/// There are at most four columns, so every set of columns that could be zero is tried.
pub(crate) fn non_negative_least_squares(equations: &[Equation], columns: usize) -> Vec<f64> {
    let mut best = (f64::INFINITY, vec![0.0; columns]);
    for set in 0_u32..(1 << columns) {
        let used: Vec<usize> = (0..columns)
            .filter(|column| set & (1 << column) != 0)
            .collect();
        let Some(solved) = least_squares(equations, &used) else {
            continue;
        };
        if solved.iter().any(|factor| *factor < 0.0) {
            continue;
        }
        let mut factors = vec![0.0; columns];
        for (column, factor) in used.iter().zip(solved) {
            factors[*column] = factor;
        }
        let error: f64 = equations
            .iter()
            .map(|it| {
                let terms = it
                    .columns
                    .iter()
                    .zip(&factors)
                    .map(|(x, factor)| x * factor);
                ((terms.sum::<f64>() - it.sum) / it.scale).powi(2)
            })
            .sum();
        // For equal errors, prefer the first columns.
        if error < best.0 - 1e-12 {
            best = (error, factors);
        }
    }
    best.1
}

/// Solves the normal equations of these columns by elimination; `None` if they depend on each
/// other.
fn least_squares(equations: &[Equation], used: &[usize]) -> Option<Vec<f64>> {
    let size = used.len();
    // Columns differ by many orders of magnitude: each is scaled to 1.
    let scales: Vec<f64> = used
        .iter()
        .map(|column| {
            let squares = equations
                .iter()
                .map(|it| (it.columns[*column] / it.scale).powi(2));
            squares.sum::<f64>().sqrt()
        })
        .collect();
    let is_useless = |scale: &f64| *scale <= 0.0 || !scale.is_finite();
    if scales.iter().any(is_useless) {
        return None;
    }
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for it in equations {
        let sum = it.sum / it.scale;
        let scaled: Vec<f64> = used
            .iter()
            .zip(&scales)
            .map(|(column, scale)| it.columns[*column] / it.scale / scale)
            .collect();
        for (line, x) in matrix.iter_mut().zip(&scaled) {
            for (cell, y) in line.iter_mut().zip(scaled.iter().chain([&sum])) {
                *cell += x * y;
            }
        }
    }
    for pivot in 0..size {
        let line = matrix[pivot].clone();
        let head = line[pivot];
        if head.abs() < 1e-9 {
            return None;
        }
        for (index, other) in matrix.iter_mut().enumerate() {
            if index == pivot {
                continue;
            }
            let factor = other[pivot] / head;
            for (cell, of_pivot) in other.iter_mut().zip(&line) {
                *cell -= factor * of_pivot;
            }
        }
    }
    let factors = (0..size).map(|index| matrix[index][size] / matrix[index][index] / scales[index]);
    Some(factors.collect())
}

/// Student's t for 95 %, both sides: exact for few degrees of freedom; for more, by Abramowitz and
/// Stegun, 26.7.5, with an error below 0.1 %.
pub fn student(degrees: f64) -> f64 {
    const FEW: [f64; 5] = [12.706, 4.303, 3.182, 2.776, 2.571];
    for (few, t) in (1_u32..).zip(FEW) {
        if degrees <= f64::from(few) {
            return t;
        }
    }
    let z = 1.959_964_f64;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
}

/// A count as a floating-point number; exact up to 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "no count of a measurement comes near 2^53"
)]
pub fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
