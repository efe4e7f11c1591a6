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
    fn there_is_no_summary_of_nothing() {
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([1.0, f64::NAN]), None);
    }
}
