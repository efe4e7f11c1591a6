//! Errors, and the exceptions that they become.

use std::io;
use std::path::{Path, PathBuf};

use arrow_schema::ArrowError;
use baler::analysis::AnalysisError;
use baler::analysis::filters::SelectionError;
use baler::analysis::quarantine::{Poison, PutAside, Quarantine};
use baler::container::{DecodeError, Limits};
use baler::transport::TransportError;
use baler::transport::uri::UriError;
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};

/// The exceptions of `baler/errors.py`.
mod exceptions {
    pyo3::import_exception!(baler.errors, DecodeError);
    pyo3::import_exception!(baler.errors, Error);
}

/// A source cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// A chunk cannot be converted.
    #[error("{0}")]
    Arrow(#[from] ArrowError),
    /// A medium cannot be opened.
    #[error(transparent)]
    Baler(baler::Error),
    /// A path cannot be read.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// Python's signal handler raised an exception, as it does for Ctrl-C.
    #[error("interrupted: {0}")]
    Interrupted(PyErr),
    /// A thread panicked: an error of this package.
    #[error("internal error: {0}")]
    Panic(String),
    /// The medium failed.
    #[error(transparent)]
    Source(#[from] AnalysisError),
    /// The medium cannot be opened.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// A condition has no answer for a record.
    #[error("{0}")]
    Undecided(String),
    /// A record type has a second version.
    #[error("{0}")]
    Version(String),
    /// An argument is wrong.
    #[error("{0}")]
    Wrong(String),
}

impl ReadError {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }
}

impl From<baler::Error> for ReadError {
    fn from(error: baler::Error) -> Self {
        match error {
            baler::Error::Setting { .. } | baler::Error::Uri(_) => Self::Wrong(error.to_string()),
            _ => Self::Baler(error),
        }
    }
}

impl From<SelectionError> for ReadError {
    fn from(error: SelectionError) -> Self {
        Self::Wrong(error.to_string())
    }
}

impl From<UriError> for ReadError {
    fn from(error: UriError) -> Self {
        Self::Wrong(error.to_string())
    }
}

impl From<ReadError> for PyErr {
    fn from(error: ReadError) -> Self {
        let text = error.to_string();
        match error {
            ReadError::Interrupted(error) => error,
            ReadError::File { source, path } => {
                let reason = io_reason(&source);
                PyOSError::new_err((source.raw_os_error(), reason, path.into_os_string()))
            }
            ReadError::Source(AnalysisError::Quarantine { origin, source }) => {
                let broken = source.get_ref().and_then(|it| it.downcast_ref::<Broken>());
                let Some(Broken { reason, cause }) = broken else {
                    return exceptions::Error::new_err(text);
                };
                let offset = cause.as_ref().map(|it| it.offset);
                let reading = cause.as_ref().map(|it| it.reading);
                let text = format!("{origin}: {reason}");
                exceptions::DecodeError::new_err((text, offset, reading, origin.into_string()))
            }
            // A field that no record has.
            ReadError::Source(AnalysisError::Stage { .. }) => PyValueError::new_err(text),
            ReadError::Panic(_) => PyRuntimeError::new_err(text),
            ReadError::Undecided(_) | ReadError::Wrong(_) => PyValueError::new_err(text),
            _ => exceptions::Error::new_err(text),
        }
    }
}

/// Returns an exception of this package.
pub(crate) fn failed(error: &dyn std::error::Error) -> PyErr {
    exceptions::Error::new_err(error.to_string())
}

/// Returns the error for a delivery of a consumer that has ended.
pub(crate) fn closed() -> PyErr {
    exceptions::Error::new_err(baler::Error::Closed.to_string())
}

/// Returns the operating system's reason without the number, which the exception has beside it.
fn io_reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// A chunk that does not decode.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
struct Broken {
    reason: String,
    /// `None` if the medium recognised the damage.
    cause: Option<DecodeError>,
}

/// Ends a source at the first chunk that does not decode.
#[derive(Debug)]
pub(crate) struct Refuse;

impl Quarantine for Refuse {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<PutAside> {
        Err(io::Error::other(Broken {
            reason: poison.reason.to_owned(),
            cause: baler::decoder(Limits::default()).decode(poison.bytes).err(),
        }))
    }
}
