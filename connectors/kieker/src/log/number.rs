//! Numbers as Java writes them.

use std::num::IntErrorKind;
use std::str::FromStr;

/// The most characters of a log that a message shows.
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

/// Returns the integer at the start of a text, and its length: an optional minus sign and at most
/// 19 digits. Returns `None` for any other text, and for `i64::MIN`.
#[inline]
pub(super) fn plain_integer(text: &[u8]) -> Option<(i64, usize)> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, text),
    };
    let (mut rest, mut number) = (digits, 0_u64);
    while let Some((eight, after)) = rest.split_first_chunk()
        && let Some(eight) = eight_digits(*eight)
    {
        number = number.wrapping_mul(100_000_000).wrapping_add(eight);
        rest = after;
    }
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        let digit = u64::from(digit - b'0');
        number = number.wrapping_mul(10).wrapping_add(digit);
        rest = after;
    }
    // A number of at most 19 digits does not wrap around.
    if !(1..=19).contains(&(digits.len() - rest.len())) {
        return None;
    }
    let number = i64::try_from(number).ok()?;
    let number = if is_negative { -number } else { number };
    Some((number, text.len() - rest.len()))
}

/// Returns the number of eight digits. Each of three steps combines all pairs at once.
#[inline]
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    const ALL: u64 = 0x0101_0101_0101_0101;
    // The first digit is the lowest byte.
    let digits = u64::from_le_bytes(text) ^ (ALL * 0x30);
    if (digits | digits.wrapping_add(ALL * 0x76)) & (ALL * 0x80) != 0 {
        return None;
    }
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
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

/// Returns the first characters of a text of the log.
pub(super) fn shown(text: &str) -> Box<str> {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", text.split_at(end).0).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests;
