//! Means, quantiles and confidence intervals of many measurements.

/// A mean with its 95 % confidence interval.
///
/// The interval holds for values that are independent of each other, such as the means of
/// repetitions in processes of their own. Measurements in quick succession are not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The distance from the mean to either end of the interval; `None` for a single value.
    pub margin: Option<f64>,
}

impl Estimate {
    /// The estimate from these values; `None` if there is none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let (mean, deviation) = mean_and_deviation(values)?;
        let count = to_f64(u64::try_from(values.len()).ok()?);
        let margin = (values.len() > 1).then(|| student(count - 1.0) * deviation / count.sqrt());
        Some(Self { mean, margin })
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

    /// The value that this share of all does not exceed, interpolated between its neighbours (type 7
    /// of Hyndman and Fan 1996, the default of R); `None` if there is no value.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        let position = share.clamp(0.0, 1.0) * to_f64(u64::try_from(last).ok()?);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the last index"
        )]
        let below = position as usize;
        let low = *self.0.get(below)?;
        let high = self.0.get(below + 1).copied().unwrap_or(low);
        Some(low + (high - low) * position.fract())
    }

    /// The mean; `None` if there is no value.
    pub fn mean(&self) -> Option<f64> {
        mean_and_deviation(&self.0).map(|(mean, _)| mean)
    }
}

/// The mean and the standard deviation of a sample, which is 0 for a single value; `None` if there
/// is none.
fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    let count = to_f64(u64::try_from(values.len()).ok()?);
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, (squares / (count - 1.0).max(1.0)).sqrt()))
}

/// Student's t for 95 %, both sides: exact for few degrees of freedom, beyond them by
/// Abramowitz and Stegun, 26.7.5, whose error is below 0.1 %.
pub(crate) fn student(degrees: f64) -> f64 {
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
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let values = Distribution::of([4.0, 1.0, f64::NAN, 3.0, 2.0]);
        let cases = [
            (0.0, 1.0),
            (0.25, 1.75),
            (0.5, 2.5),
            (0.75, 3.25),
            (1.0, 4.0),
        ];
        for (share, expected) in cases {
            assert_eq!(values.quantile(share), Some(expected));
        }
        assert_eq!(values.mean(), Some(2.5));
        assert_eq!(Distribution::of([7.0]).quantile(0.999), Some(7.0));
    }

    #[test]
    fn the_interval_of_a_mean_is_that_of_student() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        // 2.776 * 1.5811 / sqrt(5)
        assert!((estimate.mean - 3.0).abs() < 1e-9);
        assert!((estimate.margin.unwrap() - 1.963).abs() < 1e-3);
        assert_eq!(Estimate::of(&[3.0]).unwrap().margin, None);
    }

    #[test]
    fn there_is_no_summary_of_nothing() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Distribution::default().quantile(0.5), None);
        assert_eq!(Distribution::default().mean(), None);
    }
}
