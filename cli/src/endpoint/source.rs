//! The sources of records: JSON lines, or a medium.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use baler_analysis::json_lines::{JsonLinesReader, JsonLinesSettings};
use baler_common::transport::Medium;
use baler_common::transport::uri::{Uri, UriError};

use super::reader::receiver;
use super::{OpenReader, open_reader, parse, wrong};
use crate::exit::Failure;

/// The scheme of JSON lines.
const JSON_LINES: &str = "jsonl";

/// JSON lines in the list of media: the program knows their scheme, and only `send` and `analyze`
/// read them.
pub(super) const LINES: Medium = Medium {
    schemes: &[JSON_LINES],
    writer: |_| Err(no_medium()),
    receiver: |_, _follow| Err(no_medium()),
    browser: Some(|_, _browse| Err(no_medium())),
};

fn no_medium() -> UriError {
    UriError::refused("lines are no chunks; send them to a medium with send --from jsonl:FILE")
}

/// A source of records.
pub(crate) enum RecordSource {
    /// JSON lines, and their name.
    Lines(Box<JsonLinesReader>, String),
    /// A medium with chunks.
    Medium(OpenReader),
}

/// Opens JSON lines, or the receiving end of a medium.
///
/// # Errors
///
/// As [`super::open_reader`].
pub(crate) fn open_source(text: &str) -> Result<RecordSource, Failure> {
    open_source_by(text, |text| open_reader(text, false))
}

/// Opens a source as [`open_source`] does, but opens a medium with `open_medium`.
///
/// # Errors
///
/// As [`open_source`].
pub(crate) fn open_source_by(
    text: &str,
    open_medium: impl FnOnce(&str) -> Result<OpenReader, Failure>,
) -> Result<RecordSource, Failure> {
    let (uri, endpoint) = parse(text)?;
    if uri.scheme() != JSON_LINES {
        return open_medium(text).map(RecordSource::Medium);
    }
    let (path, settings) = lines_settings(uri).map_err(wrong(&endpoint))?;
    let lines = JsonLinesReader::open(&path, settings)
        .map_err(|error| Failure::unavailable(&endpoint, error))?;
    Ok(RecordSource::Lines(Box::new(lines), endpoint))
}

/// Checks the URI of JSON lines or of a medium's receiving end; nothing is opened.
///
/// # Errors
///
/// The URI is wrong.
pub(crate) fn check_source(text: &str) -> Result<(), Failure> {
    let (uri, endpoint) = parse(text)?;
    if uri.scheme() != JSON_LINES {
        return receiver(text, false).map(drop);
    }
    lines_settings(uri).map(drop).map_err(wrong(&endpoint))
}

fn lines_settings(mut uri: Uri) -> Result<(PathBuf, JsonLinesSettings), UriError> {
    uri.no_host()?;
    let path = PathBuf::from(uri.path());
    if path.as_os_str().is_empty() {
        return Err(uri.missing_in_path("the file with the lines, or - for standard input"));
    }
    let mut settings = JsonLinesSettings::default();
    settings.follow = uri.take_bool("follow")?.unwrap_or(false);
    if let Some(field) = uri.take_text("type") {
        settings.type_field = field;
    }
    if let Some(bytes) = uri.take_bytes_in::<NonZeroUsize>("max_line_bytes")? {
        settings.line_bytes = bytes.get();
    }
    let given = uri.take_text("position").map(|file| PathBuf::from(&*file));
    uri.finish()?;
    if path == Path::new("-") && (settings.follow || given.is_some()) {
        let setting = if settings.follow {
            "follow"
        } else {
            "position"
        };
        let why = "standard input has no position to go on from";
        return Err(UriError::conflict(setting, "-", why));
    }
    // A followed file has a saved position, so that the next run can continue.
    let beside = || {
        settings
            .follow
            .then(|| path.with_added_extension("position"))
    };
    settings.position_file = given.or_else(beside);
    Ok((path, settings))
}
