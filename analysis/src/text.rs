//! Text for people: escapes for terminals, points in time, spans of time.

use std::borrow::Cow;

/// Replaces each control character, those of C1 included, by its escape as in JSON: `\u001b`.
///
/// A terminal obeys control characters, so that names and values from outside could move its cursor,
/// hide lines or change its settings.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_but(text, |_| false)
}

/// As [`escape`], but keeps the control characters that `keep` accepts, such as ends of lines.
pub fn escape_but(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_unsafe = |letter: char| letter.is_control() && !keep(letter);
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len().saturating_add(8));
    for letter in text.chars() {
        if is_unsafe(letter) {
            safe.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

/// A point in time, given in nanoseconds since 1970, as RFC 3339 in UTC with microseconds (rounded
/// down): `2026-11-21T09:30:00.000125Z`.
pub fn time(unix_ns: i64) -> String {
    let micros = unix_ns.div_euclid(1_000);
    let seconds = micros.div_euclid(1_000_000);
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60,
        micros.rem_euclid(1_000_000),
    )
}

/// A day, counted from 1970, as year, month and day (Howard Hinnant's `civil_from_days`).
pub fn date(day: i64) -> (i64, i64, i64) {
    let day = day.saturating_add(719_468);
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + day.div_euclid(146_097) * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// A span of time, given in nanoseconds, with three digits that count: `740 ns`, `12.3 us`,
/// `1.23 ms`, `95.0 s`.
pub fn span(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        size if size < 999.5 => return format!("{ns:.0} ns"),
        size if size < 999.5e3 => (ns / 1e3, "us"),
        size if size < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    match value.abs() {
        size if size < 9.995 => format!("{value:.2} {unit}"),
        size if size < 99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape("plain, ümläut"), "plain, ümläut");
        assert_eq!(
            escape("a\x1b[31mb\x07\u{9b}2J\x7f\nc"),
            "a\\u001b[31mb\\u0007\\u009b2J\\u007f\\u000ac"
        );
        assert_eq!(escape_but("a\nb\r", |it| it == '\n'), "a\nb\\u000d");
    }

    #[test]
    fn times_are_rfc_3339() {
        for (ns, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (1_283_156_545_250_000_999, "2010-08-30T08:22:25.250000Z"),
            (951_784_200_000_001_000, "2000-02-29T00:30:00.000001Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224Z"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn spans_have_a_unit_and_three_digits() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (740.0, "740 ns"),
            (999.9, "1.00 us"),
            (12_345.0, "12.3 us"),
            (1_234_567.0, "1.23 ms"),
            (999_949_999.0, "1.00 s"),
            (-1.5e9, "-1.50 s"),
            (4.2e12, "4200 s"),
        ] {
            assert_eq!(span(ns), text);
        }
    }
}
