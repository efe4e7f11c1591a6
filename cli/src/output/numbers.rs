//! Counts, sizes, times and rates as people read them.

use std::time::Duration;

/// Formats a whole number with its thousands separated: `6,541`.
pub(crate) fn number(value: u64) -> String {
    grouped(&value.to_string())
}

/// Formats a count with its noun: `1 chunk`, `6,541 chunks`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", number(count))
}

pub(super) fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a size: `812 B`, `23.4 KiB`, `1.2 GiB`.
pub(crate) fn bytes(value: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
    let mut size = value as f64;
    if value < 1_024 {
        return format!("{value} B");
    }
    for unit in ["KiB", "MiB", "GiB"] {
        size /= 1_024.0;
        if size < 1_024.0 {
            return format!("{size:.1} {unit}");
        }
    }
    format!("{:.1} TiB", size / 1_024.0)
}

/// Returns a time in seconds, rounded to milliseconds.
pub(crate) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e3).round() / 1e3
}

/// Returns a rate a second, rounded to one decimal.
pub(crate) fn per_second(count: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate is no exact number")]
    if seconds > 0.0 {
        (count as f64 / seconds * 10.0).round() / 10.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
