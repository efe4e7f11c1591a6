//! Where records come from: a text log, or a medium.

use std::path::PathBuf;

use baler_analysis::kieker_log::{LogReader, LogSettings, OnBadLine};
use baler_common::transport::uri::{Uri, UriError};

use super::medium::Medium;
use super::reader::open;
use super::{KIEKER_LOG, OpenReader, bad_uri, parse};
use crate::exit::{Code, Failure};

/// Where records come from.
pub(crate) enum RecordSource {
    /// A text log of Kieker.
    Log {
        reader: Box<LogReader>,
        endpoint: String,
    },
    /// A medium with chunks.
    Medium(OpenReader),
}

/// Opens a log, or the receiving end of a medium.
///
/// # Errors
///
/// As [`super::open_reader`].
pub(crate) fn open_source(text: &str) -> Result<RecordSource, Failure> {
    let (uri, endpoint) = parse(text)?;
    if uri.scheme() != KIEKER_LOG {
        let medium = Medium::new(uri, &endpoint, true)?;
        return open(medium, endpoint, false).map(RecordSource::Medium);
    }
    let (folder, settings) = log_settings(uri).map_err(|error| bad_uri(&endpoint, &error))?;
    let reader = LogReader::open(folder, settings)
        .map_err(|error| Failure::new(Code::Unavailable, error.to_string()))?;
    Ok(RecordSource::Log {
        reader: Box::new(reader),
        endpoint,
    })
}

/// Checks the URI of a log or of a medium's receiving end; nothing is opened.
///
/// # Errors
///
/// The URI is wrong.
pub(crate) fn check_source(text: &str) -> Result<(), Failure> {
    let (uri, endpoint) = parse(text)?;
    if uri.scheme() != KIEKER_LOG {
        return Medium::new(uri, &endpoint, true).map(drop);
    }
    log_settings(uri)
        .map(drop)
        .map_err(|error| bad_uri(&endpoint, &error))
}

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
