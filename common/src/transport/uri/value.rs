//! Values with units.

use std::str::FromStr;
use std::time::Duration;

/// Factors of units of time to nanoseconds.
const TIMES: [(&str, u128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Factors of units of size to bytes.
const SIZES: [(&str, u128); 9] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

pub(super) fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "" | "1" | "on" | "true" | "yes" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Digits and nothing else.
pub(super) fn parse_number<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// A number of bytes: `4096`, `64KiB`, `1MB`; `kB`, `MB` and `GB` are powers of 1,000.
///
/// For settings that are not part of a URI, flags for instance.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let bytes = parse_quantity(&text.to_ascii_lowercase(), &SIZES)?;
    u64::try_from(bytes).ok()
}

/// A time: `200ms`, `5s`, `2m`, `1.5h`; units are `ns`, `us`, `ms`, `s`, `m`, `h` and `d`, and only
/// 0 may go without.
///
/// For settings that are not part of a URI, flags for instance.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let nanos = parse_quantity(text, &TIMES)?;
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

/// Digits, perhaps a point and more digits, then a unit. What is below the smallest unit is cut.
fn parse_quantity(text: &str, units: &[(&str, u128)]) -> Option<u128> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok().filter(|n| *n <= 9)?)?;
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = fraction.parse().ok()?;
    let scaled = u128::from(whole)
        .checked_mul(scale)?
        .checked_add(u128::from(fraction))?;
    Some(scaled.checked_mul(*factor)? / scale)
}
