//! Values that clap does not know: durations, sizes, rates, points in time.

use std::time::Duration;

use super::ChunkRecords;

use baler_common::container::Compression;
use baler_common::transport::uri::{parse_bytes, parse_duration};

/// Factors of counts.
const FACTORS: [(&str, u64); 3] = [("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

/// A duration with its unit, as in URIs: `500ms`, `1.5s`, `2m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| format!("`{text}` is no duration; write 250us, 500ms, 2s, 1.5m or 1h"))
}

/// A size in bytes: `65536`, `64KiB`, `1MB`; at least 1.
pub(crate) fn size(text: &str) -> Result<std::num::NonZeroUsize, String> {
    parse_bytes(text)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .and_then(std::num::NonZeroUsize::new)
        .ok_or_else(|| format!("`{text}` is no size; write 65536, 64KiB or 1MB, at least 1"))
}

/// How many records a chunk has: `1024`, at least 1, or `auto`.
pub(crate) fn chunk_records(text: &str) -> Result<ChunkRecords, String> {
    if text == "auto" {
        return Ok(ChunkRecords::Auto);
    }
    let records = text.parse().map(ChunkRecords::Fixed);
    records
        .map_err(|_| format!("`{text}` is no number of records; write 1024, at least 1, or auto"))
}

/// A count: `1000000`, `250k`, `1M`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    let count = plain.parse().ok();
    count
        .or_else(|| with_factor(&plain))
        .ok_or_else(|| format!("`{text}` is no count; write 1000000, 250k or 1M"))
}

/// Where to listen: `127.0.0.1:9464`, `[::1]:9464`, or a port of loopback, `9464` or `:9464`.
pub(crate) fn listen_address(text: &str) -> Result<std::net::SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>().ok();
    let loopback = |port| std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, port));
    text.parse()
        .ok()
        .or_else(|| port.map(loopback))
        .ok_or_else(|| {
            format!("`{text}` is no address; write 127.0.0.1:9464, 0.0.0.0:9464 or 9464")
        })
}

/// A rate in records a second, above 0: `500`, `2.5k`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let plain = text.parse::<f64>().ok();
    #[expect(clippy::cast_precision_loss, reason = "a rate is no exact number")]
    let factored = || with_factor(text).map(|rate| rate as f64);
    plain
        .or_else(factored)
        .filter(|rate| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| format!("`{text}` is no rate; write records a second: 500, 20k or 1.5M"))
}

/// A point in time as nanoseconds since the Unix epoch: such a number, or RFC 3339.
pub(crate) fn time(text: &str) -> Result<i64, String> {
    if let Ok(nanos) = text.parse() {
        return Ok(nanos);
    }
    rfc3339(text).ok_or_else(|| {
        format!("`{text}` is no time; write 2010-08-30T08:22:25.5Z or nanoseconds since 1970")
    })
}

/// A compression by its name.
pub(crate) fn compression(text: &str) -> Result<Compression, String> {
    text.parse::<Compression>()
        .map_err(|error| error.to_string())
}

/// A decimal number followed by a factor.
fn with_factor(text: &str) -> Option<u64> {
    let (number, factor) = FACTORS
        .iter()
        .find_map(|(name, factor)| Some((text.strip_suffix(name)?, *factor)))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || number.ends_with('.') {
        return None;
    }
    let mut total = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    let mut scale = factor;
    for digit in fraction.bytes() {
        scale /= 10;
        total = total.checked_add(scale.checked_mul(u64::from(digit - b'0'))?)?;
    }
    Some(total)
}

/// RFC 3339, section 5.6, with a fraction of up to nine digits.
fn rfc3339(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-').map(|part| (part.len(), part.parse()));
    let mut part = |len, range: std::ops::RangeInclusive<i64>| match date.next()? {
        (found, Ok(value)) if found == len && range.contains(&value) => Some(value),
        _ => None,
    };
    let (year, month, day) = (part(4, 0..=9999)?, part(2, 1..=12)?, part(2, 1..=31)?);
    let (clock, offset_seconds) = match time.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, 0),
        None => {
            let sign = time.rfind(['+', '-'])?;
            let (clock, offset) = time.split_at_checked(sign)?;
            let seconds = hours_and_minutes(offset.get(1..)?)?;
            (
                clock,
                if offset.starts_with('-') {
                    -seconds
                } else {
                    seconds
                },
            )
        }
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let (minutes, seconds) = clock.rsplit_once(':')?;
    let seconds: i64 = seconds.parse().ok().filter(|it| (0..=60).contains(it))?;
    let seconds = hours_and_minutes(minutes)? + seconds - offset_seconds;
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanos: i64 = format!("{fraction:0<9}").parse().ok()?;
    days_since_1970(year, month, day)
        .checked_mul(86_400)?
        .checked_add(seconds)?
        .checked_mul(1_000_000_000)?
        .checked_add(nanos)
}

/// `hh:mm` in seconds.
fn hours_and_minutes(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let hours: i64 = hours.parse().ok().filter(|it| (0..=23).contains(it))?;
    let minutes: i64 = minutes.parse().ok().filter(|it| (0..=59).contains(it))?;
    Some((hours * 60 + minutes) * 60)
}

/// Days of the proleptic Gregorian calendar; Howard Hinnant's `days_from_civil`.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_counts_and_rates_are_read() {
        assert_eq!(size("64KiB").unwrap().get(), 65_536);
        assert_eq!(size("1.5MB").unwrap().get(), 1_500_000);
        assert!(size("0").is_err());
        assert_eq!(count("1_000_000"), Ok(1_000_000));
        assert_eq!(count("250k"), Ok(250_000));
        assert_eq!(rate("0.5"), Ok(0.5));
        assert_eq!(rate("2.5k"), Ok(2_500.0));
        assert!(rate("0").is_err() && rate("NaN").is_err());
        assert_eq!(chunk_records("auto"), Ok(ChunkRecords::Auto));
        let fixed = chunk_records("16").unwrap();
        assert_eq!(fixed.to_string(), "16");
        assert!(chunk_records("0").is_err() && chunk_records("Auto").is_err());
    }

    #[test]
    fn times_are_numbers_or_rfc_3339() {
        for (text, nanos) in [
            ("0", 0),
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59.999999999Z", -1),
            ("2010-08-30T08:22:25Z", 1_283_156_545_000_000_000),
            ("2010-08-30T10:22:25.25+02:00", 1_283_156_545_250_000_000),
            ("2000-02-29T00:00:00-00:30", 951_784_200_000_000_000),
        ] {
            assert_eq!(time(text), Ok(nanos), "{text}");
        }
        for text in [
            "",
            "today",
            "2010-8-30T08:22:25Z",
            "2010-08-30T08:22:25",
            "2010-08-30",
        ] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
