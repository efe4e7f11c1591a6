//! Text for human readers: escapes for terminals, points in time, spans of time.

use std::borrow::Cow;

use baler_common::calendar;

/// The look of pages for a browser, light or dark as the reader's system is: CSS with the colours
/// `--bg`, `--card`, `--text`, `--soft`, `--line`, `--bar`, `--mark` and `--bad`.
pub const PAGE_STYLE: &str = include_str!("page.css");

/// Replaces each control character, including those of C1, by its escape as in JSON: `\u001b`.
///
/// A terminal obeys control characters. So untrusted names and values could move its cursor, hide
/// lines or change its settings.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_but(text, |_| false)
}

/// As [`escape`], but keeps the control characters that `keep` accepts, such as ends of lines.
pub fn escape_but(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_unsafe = |letter: char| letter.is_control() && !keep(letter);
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if is_unsafe(letter) {
            safe.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

/// Returns the end of a message, which proposes the nearest name.
pub fn nearest(word: &str, known: &[impl AsRef<str>]) -> String {
    known
        .iter()
        .map(AsRef::as_ref)
        .map(|known| (strsim::normalized_damerau_levenshtein(word, known), known))
        .filter(|(similarity, _)| *similarity >= 0.4)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, nearest)| {
            format!("; did you mean {nearest}?")
        })
}

/// Returns at most `width` characters of a text. An ellipsis stands for a part in the middle: of
/// names, the end says more than the beginning.
pub fn shortened(text: &str, width: usize) -> Cow<'_, str> {
    let letters = text.chars().count();
    if letters <= width {
        return Cow::Borrowed(text);
    }
    // Without room the ellipsis remains.
    let kept = width.max(1) - 1;
    let (start, end) = (kept * 2 / 5, kept - kept * 2 / 5);
    let mut short: String = text.chars().take(start).collect();
    short.push('…');
    short.extend(text.chars().skip(letters - end));
    Cow::Owned(short)
}

/// A point in time, given in nanoseconds since 1970, as RFC 3339 in UTC with microseconds (rounded
/// down): `2026-11-21T09:30:00.000125Z`.
pub fn time(unix_ns: i64) -> String {
    let micros = unix_ns.div_euclid(1_000);
    let seconds = micros.div_euclid(1_000_000);
    let (year, month, day) = calendar::date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60,
        micros.rem_euclid(1_000_000),
    )
}

/// A span of time, given in nanoseconds, with three significant digits: `740 ns`, `12.3 us`,
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
mod tests;
