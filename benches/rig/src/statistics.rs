//! What many measurements of one thing say together.

use serde::Serialize;

/// Median and range of the repetitions of a measurement.
///
/// The median, because an interruption makes a repetition slower and never faster: the mean would
/// follow the interruptions.
/// The range, because with a handful of repetitions every other measure of spread is a guess.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Summary {
    /// The summary of these values; `None` if there is none, or one of them is no number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        if values.iter().any(|value| value.is_nan()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let upper = *values.get(values.len() / 2)?;
        let median = match values.len() % 2 {
            0 => f64::midpoint(*values.get(values.len() / 2 - 1)?, upper),
            _ => upper,
        };
        Some(Self {
            median,
            min: *values.first()?,
            max: *values.last()?,
        })
    }
}

/// A mean with its 95 % confidence interval.
///
/// The interval holds for values that are independent of each other, such as the means of
/// repetitions in processes of their own, if the machine stays the same ([`autocorrelation`]); what is
/// measured in quick succession is not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The interval reaches from so much below the mean to so much above it; `None` for a single
    /// value.
    pub margin: Option<f64>,
}

impl Estimate {
    /// That of these values; `None` if there is none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let (mean, deviation) = mean_and_deviation(values)?;
        let count = to_f64(u64::try_from(values.len()).ok()?);
        let margin = (values.len() > 1).then(|| student(count - 1.0) * deviation / count.sqrt());
        Some(Self { mean, margin })
    }
}

/// So many values of every so many are left out at either end of a trimmed mean.
const TRIMMED: usize = 8;

impl Estimate {
    /// The mean without the smallest and the largest eighth, rounded down, and its interval: Tukey and
    /// McLaughlin's trimmed t (1963), which is Student's where nothing is left out. One repetition
    /// that something else disturbed does not widen it, and where nothing was disturbed it is hardly
    /// wider.
    pub fn trimmed(values: &[f64]) -> Option<Self> {
        let cut = values.len() / TRIMMED;
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let kept = sorted.get(cut..sorted.len().checked_sub(cut)?)?;
        if cut == 0 {
            return Self::of(values);
        }
        let (mean, _) = mean_and_deviation(kept)?;
        let (_, deviation) = mean_and_deviation(&winsorised(values))?;
        let [all, kept] = [values.len(), kept.len()].map(|it| u32::try_from(it).map(f64::from));
        let (all, kept) = (all.ok()?, kept.ok()?);
        let margin = student(kept - 1.0) * deviation * all.sqrt() / kept;
        Some(Self {
            mean,
            margin: Some(margin),
        })
    }
}

/// The values in their order, of which those that a trimmed mean leaves out count as much as the last
/// one that it does not.
fn winsorised(values: &[f64]) -> Vec<f64> {
    let cut = values.len() / TRIMMED;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ends = (sorted.get(cut), sorted.iter().rev().nth(cut));
    let (Some(least), Some(most)) = ends else {
        return Vec::new();
    };
    let within = values.iter().map(|value| value.clamp(*least, *most));
    within.collect()
}

/// How much values that follow each other in time resemble each other: the autocorrelation of
/// neighbours, from 0 (not at all, or less than by chance) to 0.8 (nothing can be told), of several
/// series together, each by itself too short to tell.
///
/// What it is of 0 is what intervals of a mean are made for. A machine that is slower for some minutes
/// makes neighbours alike; then so many values tell as much as fewer do that have nothing in common.
/// What a trimmed mean leaves out counts little here, too.
pub fn autocorrelation<'a>(series: impl IntoIterator<Item = &'a [f64]>) -> f64 {
    let (mut products, mut squares, mut count, mut expected) = (0.0, 0.0, 0.0, 0.0);
    for values in series {
        let values = winsorised(values);
        let Some((mean, _)) = mean_and_deviation(&values).filter(|(mean, _)| *mean != 0.0) else {
            continue;
        };
        let apart: Vec<f64> = values.iter().map(|value| value / mean - 1.0).collect();
        let pairs = apart.iter().zip(apart.iter().skip(1));
        products += pairs.map(|(value, next)| value * next).sum::<f64>();
        squares += apart.iter().map(|value| value * value).sum::<f64>();
        count += to_f64(u64::try_from(values.len()).unwrap_or(0));
        expected += 1.0;
    }
    if squares == 0.0 {
        return 0.0;
    }
    // Of values that have nothing in common but their mean it is a little below nothing: Kendall 1954.
    (products / squares + expected / count).clamp(0.0, MOST_AUTOCORRELATION)
}

/// With more than that in common, values tell next to nothing.
const MOST_AUTOCORRELATION: f64 = 0.8;

/// How many times as wide the interval of a mean is where neighbours resemble each other so much: as of
/// a first-order autoregressive process, of which many values tell as much as (1 - r) / (1 + r) times
/// as many that have nothing in common.
pub fn widening(autocorrelation: f64) -> f64 {
    ((1.0 + autocorrelation) / (1.0 - autocorrelation)).sqrt()
}

/// Many values, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Distribution(Vec<f64>);

impl Distribution {
    /// Puts the values in order; those that are no numbers are left out.
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

    /// The mean and the standard deviation of a sample; `None` if there is no value.
    pub fn mean_and_deviation(&self) -> Option<(f64, f64)> {
        mean_and_deviation(&self.0)
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
    fn a_summary_needs_no_order() {
        let summary = Summary::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(
            summary,
            Summary {
                median: 2.0,
                min: 1.0,
                max: 3.0
            }
        );
        assert_eq!(Summary::of([4.0, 1.0]).unwrap().median, 2.5);
    }

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
        let (mean, deviation) = values.mean_and_deviation().unwrap();
        assert!((mean - 2.5).abs() < 1e-9 && (deviation - 1.290_994).abs() < 1e-6);
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
    fn one_odd_value_does_not_widen_a_trimmed_interval() {
        let even: Vec<f64> = (0..12).map(|value| 100.0 + f64::from(value % 4)).collect();
        let trimmed = Estimate::trimmed(&even).unwrap();
        let plain = Estimate::of(&even).unwrap();
        assert!((trimmed.mean - plain.mean).abs() < 0.01);
        assert!(trimmed.margin.unwrap() < plain.margin.unwrap() * 1.3);
        let mut odd = even;
        odd[5] = 500.0;
        let disturbed = Estimate::trimmed(&odd).unwrap();
        assert!(disturbed.margin.unwrap() < trimmed.margin.unwrap() * 1.3);
        assert!(Estimate::of(&odd).unwrap().margin.unwrap() > 50.0);
        // Too few to leave one out.
        let few = [1.0, 2.0, 9.0];
        assert_eq!(Estimate::trimmed(&few), Estimate::of(&few));
        // By hand: of 1 to 8 without the ends the mean is 4.5, the deviation of 2 2 3 4 5 6 7 7 is
        // 2.0702, times 2.571 (5 degrees) times the root of 8 by 6.
        let eight = [8.0, 1.0, 2.0, 3.0, 7.0, 4.0, 5.0, 6.0];
        let eight = Estimate::trimmed(&eight).unwrap();
        assert!((eight.mean - 4.5).abs() < 1e-9);
        assert!((eight.margin.unwrap() - 2.5090).abs() < 1e-3, "{eight:?}");
    }

    #[test]
    fn neighbours_that_resemble_each_other_widen_intervals() {
        // Not in common: numbers of a linear congruence.
        let mut state = 1_u32;
        let mut noise = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1_u32 << 24) - 0.5
        };
        let series = |of: &mut dyn FnMut(u32) -> f64| -> Vec<Vec<f64>> {
            (0..40).map(|_| (0..16).map(&mut *of).collect()).collect()
        };
        let told = |all: &[Vec<f64>]| autocorrelation(all.iter().map(Vec::as_slice));
        let apart = told(&series(&mut |_| 100.0 + noise()));
        assert!(apart < 0.1, "{apart}");
        let mut before = 0.0;
        let alike = told(&series(&mut |number| {
            // An autoregressive process with 0.6, which begins anew.
            before = if number == 0 { 0.0 } else { 0.6 * before } + noise();
            100.0 + before
        }));
        // Short series tell less than there is.
        assert!((0.35..0.65).contains(&alike), "{alike}");
        let slower: Vec<f64> = (0..16).map(|it| 100.0 + f64::from(it / 8)).collect();
        assert!(told(&[slower]) > 0.7);
        let turns: Vec<f64> = (0..16).map(|it| 100.0 + f64::from(it % 2)).collect();
        assert_eq!(told(&[turns]), 0.0);
        assert_eq!(
            told(&[vec![], vec![1.0], vec![0.0, 0.0], vec![3.0; 9]]),
            0.0
        );
        assert!((widening(0.6) - 2.0).abs() < 1e-9);
        assert_eq!(widening(0.0), 1.0);
    }

    #[test]
    fn there_is_no_summary_of_nothing() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::trimmed(&[]), None);
        assert_eq!(Distribution::default().quantile(0.5), None);
        assert_eq!(Distribution::default().mean_and_deviation(), None);
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([1.0, f64::NAN]), None);
    }
}
