//! Where records come from: a text log, JSON lines, or a medium.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use baler_analysis::json_lines::{JsonLinesReader, JsonLinesSettings, Next};
use baler_common::transport::Medium;
use baler_common::transport::uri::{Uri, UriError};
#[cfg(feature = "kieker")]
use baler_connector_kieker::log::{LogError, LogReader, LogSettings, OnBadLine};
#[cfg(feature = "kieker")]
use baler_connector_kieker::{KiekerLogWriter, KiekerLogWriterConfig};

use super::reader::receiver;
use super::{OpenReader, open_reader, parse, wrong};
use crate::exit::{Code, Failure};

/// The scheme of text logs.
#[cfg(feature = "kieker")]
const KIEKER_LOG: &str = baler_connector_kieker::LOG_SCHEME;

/// The scheme of JSON lines.
const JSON_LINES: &str = "jsonl";

/// Logs in the list of media: the program knows their schemes, and only `send` reads them. Kieker's
/// can be written, too.
pub(super) const LOGS: Medium = Medium {
    schemes: &[
        JSON_LINES,
        #[cfg(feature = "kieker")]
        KIEKER_LOG,
    ],
    writer: |uri| match uri.scheme() {
        #[cfg(feature = "kieker")]
        KIEKER_LOG => {
            let config = KiekerLogWriterConfig::from_uri(uri)?;
            Ok(Box::new(KiekerLogWriter::new(config)))
        }
        _ => Err(no_medium(&uri)),
    },
    receiver: |uri, _follow| Err(no_medium(&uri)),
    browser: Some(|uri, _browse| Err(no_medium(&uri))),
};

fn no_medium(uri: &Uri) -> UriError {
    let scheme = uri.scheme();
    UriError::refused(format!(
        "a log has no chunks; send it to a medium with send --from {scheme}:PATH"
    ))
}

/// Where records come from.
pub(crate) enum RecordSource {
    /// A log: its lines, and its name.
    Log(LogLines, String),
    /// A medium with chunks.
    Medium(OpenReader),
}

/// The lines of a log.
pub(crate) enum LogLines {
    /// JSON lines.
    Json(Box<JsonLinesReader>),
    /// A text log of Kieker.
    #[cfg(feature = "kieker")]
    Kieker(Box<LogReader>),
}

impl LogLines {
    /// The next line of the log with this name.
    ///
    /// # Errors
    ///
    /// The log cannot be read, or ends with a wrong line as its URI says.
    pub(crate) fn next(&mut self, endpoint: &str) -> Result<Next, Failure> {
        match self {
            Self::Json(lines) => lines.read().map_err(|error| {
                let message = format!("cannot read {endpoint}: {error}");
                Failure::new(Code::Unavailable, message)
            }),
            #[cfg(feature = "kieker")]
            Self::Kieker(log) => match log.next_record() {
                Ok(record) => Ok(record.map_or(Next::End, Next::Record)),
                Err(error @ LogError::Line(_)) => Err(Failure::new(Code::Data, error.to_string())),
                Err(error) => Err(Failure::new(Code::Unavailable, error.to_string())),
            },
        }
    }
}

/// Opens a log, or the receiving end of a medium.
///
/// # Errors
///
/// As [`super::open_reader`].
pub(crate) fn open_source(text: &str) -> Result<RecordSource, Failure> {
    open_source_by(text, |text| open_reader(text, false))
}

/// As [`open_source`], where `open_medium` opens a medium.
///
/// # Errors
///
/// As [`open_source`].
pub(crate) fn open_source_by(
    text: &str,
    open_medium: impl FnOnce(&str) -> Result<OpenReader, Failure>,
) -> Result<RecordSource, Failure> {
    let (uri, endpoint) = parse(text)?;
    let lines = match uri.scheme() {
        JSON_LINES => {
            let (path, settings) = lines_settings(uri).map_err(wrong(&endpoint))?;
            let reader = JsonLinesReader::open(&path, settings)
                .map_err(|error| Failure::unavailable(&endpoint, error))?;
            LogLines::Json(Box::new(reader))
        }
        #[cfg(feature = "kieker")]
        KIEKER_LOG => {
            let (folder, settings) = log_settings(uri).map_err(wrong(&endpoint))?;
            let reader = LogReader::open(folder, settings)
                .map_err(|error| Failure::new(Code::Unavailable, error.to_string()))?;
            LogLines::Kieker(Box::new(reader))
        }
        _ => return open_medium(text).map(RecordSource::Medium),
    };
    Ok(RecordSource::Log(lines, endpoint))
}

/// Checks the URI of a log or of a medium's receiving end; nothing is opened.
///
/// # Errors
///
/// The URI is wrong.
pub(crate) fn check_source(text: &str) -> Result<(), Failure> {
    let (uri, endpoint) = parse(text)?;
    match uri.scheme() {
        #[cfg(feature = "kieker")]
        KIEKER_LOG => log_settings(uri).map(drop),
        JSON_LINES => lines_settings(uri).map(drop),
        _ => return receiver(text, false).map(drop),
    }
    .map_err(wrong(&endpoint))
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
    // Who follows a file wants to go on after a restart.
    let beside = || {
        settings
            .follow
            .then(|| path.with_added_extension("position"))
    };
    settings.position_file = given.or_else(beside);
    Ok((path, settings))
}

#[cfg(feature = "kieker")]
fn log_settings(mut uri: Uri) -> Result<(PathBuf, LogSettings), UriError> {
    uri.no_host()?;
    let mut settings = LogSettings::default();
    let choices = [("skip", OnBadLine::Skip), ("stop", OnBadLine::Stop)];
    if let Some(on_bad_line) = uri.take_choice("on_bad_line", &choices)? {
        settings.on_bad_line = on_bad_line;
    }
    let folder = PathBuf::from(uri.path());
    if folder.as_os_str().is_empty() {
        return Err(uri.missing_in_path("the folder of the log"));
    }
    uri.finish()?;
    Ok((folder, settings))
}
