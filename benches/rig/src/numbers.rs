//! Numbers as texts of three digits.

/// [`short`], or a dash where there is no value.
pub fn short_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), short)
}

/// Returns a number with three significant digits, or three decimals below 1, in a form that fits a
/// column: `3.10k`, `25.0M`, `0.017`.
pub fn short(value: f64) -> String {
    let magnitude = value.abs();
    for (unit, factor) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        // A number that would be shown as 1000 of one unit is shown as 1 of the next.
        if magnitude >= factor * 0.9995 {
            return format!("{}{unit}", three_digits(value / factor));
        }
    }
    three_digits(value)
}

fn three_digits(value: f64) -> String {
    let decimals = significant(value);
    format!("{value:.decimals$}")
}

/// Returns the number of decimals, at most three, with which a number has three significant digits.
pub(crate) fn significant(value: f64) -> usize {
    match value.abs() {
        large if large >= 99.95 => 0,
        medium if medium >= 9.995 => 1,
        small if small >= 0.9995 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests;
