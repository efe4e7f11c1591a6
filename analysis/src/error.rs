//! Errors of the consuming side.

use std::io;

use baler_common::transport::TransportError;

/// A pipeline cannot go on.
///
/// Chunks that do not decode are no error: they are quarantined and counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// A sink's output failed, a full disk for instance.
    #[error("cannot write {what}: {source}")]
    Output {
        /// The output.
        what: Box<str>,
        /// The cause.
        source: io::Error,
    },
    /// Neither the chunk nor its reason could be put aside, so it was given back to the medium.
    #[error("cannot quarantine a chunk from {origin}: {source}")]
    Quarantine {
        /// Where the chunk came from.
        origin: Box<str>,
        /// The cause.
        source: io::Error,
    },
    /// A stage refused the records, by its own rule.
    #[error("{stage}: {message}")]
    Stage {
        /// The stage's name.
        stage: &'static str,
        /// The reason.
        message: Box<str>,
    },
    /// A stage did not end by the deadline: its output takes nothing, a full pipe that nobody reads
    /// for instance. The parcels that it holds were given back to the medium.
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
    /// The medium failed for good.
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

    /// A refusal by a stage's own rule.
    pub fn stage(stage: &'static str, message: impl Into<Box<str>>) -> Self {
        Self::Stage {
            stage,
            message: message.into(),
        }
    }

    /// Whether the error is that nobody reads the output any more, as when piped to `head`.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}
