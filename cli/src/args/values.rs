//! Values that clap does not know: durations, sizes, rates, points in time.

use std::time::Duration;

use super::ChunkRecords;

use baler_common::calendar;
use baler_common::transport::uri::{parse_bytes, parse_duration};
#[cfg(any(feature = "instrument", feature = "kieker"))]
use baler_connector_kieker::pattern::Dialect;
#[cfg(any(feature = "instrument", feature = "kieker"))]
use clap::builder::{PossibleValuesParser, TypedValueParser};
use toml_datetime::{Datetime, Offset};

/// Parses a duration with its unit, as in URIs: `500ms`, `1.5s`, `2m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| format!("`{text}` is no duration; write 250us, 500ms, 2s, 1.5m or 1h"))
}

/// Parses a size in bytes: `65536`, `64KiB`, `1MB`; at least 1.
pub(crate) fn size(text: &str) -> Result<std::num::NonZeroUsize, String> {
    parse_bytes(text)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .and_then(std::num::NonZeroUsize::new)
        .ok_or_else(|| format!("`{text}` is no size; write 65536, 64KiB or 1MB, at least 1"))
}

/// Parses the number of records in a chunk: `1024`, at least 1, or `auto`.
pub(crate) fn chunk_records(text: &str) -> Result<ChunkRecords, String> {
    if text == "auto" {
        return Ok(ChunkRecords::Auto);
    }
    let records = text.parse().map(ChunkRecords::Fixed);
    records
        .map_err(|_| format!("`{text}` is no number of records; write 1024, at least 1, or auto"))
}

/// Parses a count: `1000000`, `250k`, `1M`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    let count = plain.parse().ok();
    count
        .or_else(|| with_factor(&plain))
        .ok_or_else(|| format!("`{text}` is no count; write 1000000, 250k or 1M"))
}

/// Parses an address to listen on: `127.0.0.1:9464`, `[::1]:9464`, or a port of loopback, `9464` or
/// `:9464`.
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

/// Parses a rate in records a second, above 0: `500`, `2.5k`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let plain = text.parse::<f64>().ok();
    #[expect(clippy::cast_precision_loss, reason = "a rate is no exact number")]
    let factored = || with_factor(text).map(|rate| rate as f64);
    plain
        .or_else(factored)
        .filter(|rate| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| format!("`{text}` is no rate; write records a second: 500, 20k or 1.5M"))
}

/// Parses a point in time to nanoseconds since the Unix epoch: such a number, or RFC 3339. Records
/// have times from 1677 to 2262; a time beyond is before or after all of them.
pub(crate) fn time(text: &str) -> Result<i64, String> {
    let nanos = text.parse().ok().or_else(|| rfc3339(text));
    nanos.ok_or_else(|| {
        format!("`{text}` is no time; write 2010-08-30T08:22:25.5Z or nanoseconds since 1970")
    })
}

/// Parses a point in time of RFC 3339, which is a kind of TOML's dates.
fn rfc3339(text: &str) -> Option<i64> {
    let Datetime { date, time, offset } = text.parse().ok()?;
    let (date, time) = (date?, time?);
    let offset_minutes = match offset? {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    let hours = calendar::day(date.year, date.month, date.day) * 24 + i64::from(time.hour);
    let minutes = hours * 60 + i64::from(time.minute) - offset_minutes;
    // A time beyond the range of 64 bits is the end of this range.
    let nanos = (minutes * 60 + i64::from(time.second?)).saturating_mul(1_000_000_000);
    Some(nanos.saturating_add(time.nanosecond.map_or(0, i64::from)))
}

/// Parses a dialect of patterns by its name.
#[cfg(any(feature = "instrument", feature = "kieker"))]
pub(crate) fn dialects() -> impl TypedValueParser<Value = Dialect> {
    PossibleValuesParser::new(Dialect::ALL.map(Dialect::name)).map(|name| {
        let mut all = Dialect::ALL.into_iter();
        all.find(|it| it.name() == name)
            .expect("the name is one of them")
    })
}

/// Parses a decimal number followed by a factor: `k`, `M` or `G`, as in sizes.
fn with_factor(text: &str) -> Option<u64> {
    let number = text.strip_suffix(['k', 'M', 'G']);
    number.and_then(|_| parse_bytes(&format!("{text}B")))
}

#[cfg(test)]
mod tests;
