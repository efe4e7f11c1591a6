//! The headers that the settings add to a writer's requests. Their values are secrets.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use baler_common::transport::Failure;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// The form of a header in the settings.
pub(crate) const EXPECTED: &str = "name=value with a name that no request has anyway";

/// The headers that requests have anyway, and those of `grpc-`.
const OWN: [&str; 8] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "te",
    "transfer-encoding",
    "user-agent",
];

/// Reads a header of each piece. Returns nothing if one has another form than [`EXPECTED`].
pub(crate) fn parse<'a>(pieces: impl Iterator<Item = &'a str>) -> Option<HeaderMap> {
    let pieces = pieces.map(str::trim).filter(|it| !it.is_empty());
    let headers = pieces.map(|it| {
        let (name, value) = it.split_once('=')?;
        let name = HeaderName::from_bytes(name.trim_end().as_bytes()).ok()?;
        if OWN.contains(&name.as_str()) || name.as_str().starts_with("grpc-") {
            return None;
        }
        let mut value = HeaderValue::from_str(value.trim_start()).ok()?;
        // So `Debug` does not show it, and HTTP/2 keeps it in no table.
        value.set_sensitive(true);
        Some((name, value))
    });
    headers.collect()
}

/// Reads a file with a header in each line.
pub(crate) fn read(path: &Path) -> Result<HeaderMap, Failure> {
    let failed = |why: &dyn Display| {
        let message = format!("headers_file {}: {why}", path.display());
        Failure::last("connect to", message)
    };
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    parse(text.lines()).ok_or_else(|| failed(&format_args!("a line is not {EXPECTED}")))
}

#[cfg(test)]
mod tests;
