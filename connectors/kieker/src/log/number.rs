//! Numbers as Java writes them.

use std::num::IntErrorKind;
use std::str::FromStr;

/// How many characters of a log a message shows at most.
const SHOWN_CHARS: usize = 200;

/// Parses a decimal integer.
pub(super) fn integer<T>(text: &str, wanted: &'static str) -> Result<T, Box<str>>
where
    T: FromStr<Err = std::num::ParseIntError>,
{
    text.parse().map_err(|error: T::Err| match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => out_of_range(text, wanted),
        _ => not_a_number(text, wanted),
    })
}

/// Parses a number as `Double.toString` and `Float.toString` write it: `0.25`, `1.0E-7`, `NaN`,
/// `-Infinity`.
///
/// Rust reads `inf` and `nan` too; Java writes neither.
pub(super) fn floating<T>(text: &str, wanted: &'static str) -> Result<T, Box<str>>
where
    T: FromStr + Copy + Into<f64>,
{
    let is_special = matches!(text, "NaN" | "Infinity" | "-Infinity");
    let is_plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    match text.parse::<T>() {
        Ok(number) if is_special => Ok(number),
        Ok(number) if text.bytes().all(is_plain) => match number.into().is_finite() {
            true => Ok(number),
            false => Err(out_of_range(text, wanted)),
        },
        _ => Err(not_a_number(text, wanted)),
    }
}

fn not_a_number(text: &str, wanted: &str) -> Box<str> {
    format!("{:?} is not a number of type {wanted}", shown(text)).into()
}

fn out_of_range(text: &str, wanted: &str) -> Box<str> {
    format!("{} does not fit the type {wanted}", shown(text)).into()
}

/// The first characters of a text of the log.
pub(super) fn shown(text: &str) -> Box<str> {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests;
