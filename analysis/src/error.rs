//! Errors of the consuming side.

use std::io;
use std::path::Path;

use baler_common::transport::TransportError;

/// A pipeline cannot continue.
///
/// Chunks that do not decode are not an error: they go to quarantine and are counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// A sink's output failed, for example because the disk is full.
    #[error("cannot write {what}: {source}")]
    Output {
        /// The output.
        what: Box<str>,
        /// The cause.
        source: io::Error,
    },
    /// The quarantine could not keep a chunk, so the chunk was given back to the medium.
    #[error("cannot quarantine a chunk from {origin}: {source}")]
    Quarantine {
        /// The origin of the chunk.
        origin: Box<str>,
        /// The cause.
        source: io::Error,
    },
    /// A stage refused the records, for a reason of its own.
    #[error("{stage}: {message}")]
    Stage {
        /// The stage's name.
        stage: &'static str,
        /// The reason.
        message: Box<str>,
    },
    /// A stage did not end by the deadline, because its output takes no data, for example a full
    /// pipe without a reader. Its parcels were given back to the medium.
    #[error("{stage}: the output took nothing more until the deadline")]
    Stalled {
        /// The stage's name.
        stage: &'static str,
    },
    /// A stage panicked on its own thread.
    #[error("{stage} panicked: {message}")]
    StagePanicked {
        /// The stage's name.
        stage: &'static str,
        /// The message of the panic.
        message: Box<str>,
    },
    /// The medium failed permanently.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

impl AnalysisError {
    /// An error of a sink's output.
    pub fn output(what: impl Into<Box<str>>, source: io::Error) -> Self {
        Self::Output {
            what: what.into(),
            source,
        }
    }

    /// Returns a function that converts an error of this file, which a sink writes.
    pub(crate) fn of_file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::output(path.display().to_string(), source)
    }

    /// Returns the error of a stage that refuses records.
    pub fn stage(stage: &'static str, message: impl Into<Box<str>>) -> Self {
        Self::Stage {
            stage,
            message: message.into(),
        }
    }

    /// Whether the reader of the output has gone, as when piped to `head`.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}
