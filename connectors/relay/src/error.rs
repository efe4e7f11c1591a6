//! Why a relay cannot go on.

use std::io;
use std::sync::Arc;

use baler_common::transport::TransportError;

/// Why a relay cannot go on. What is in flight is drained or given back by
/// [`Relay::close`](crate::Relay::close).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The source failed, and trying again cannot help.
    #[error("{0}")]
    Source(#[source] TransportError),
    /// The sink cannot be opened, and trying again cannot help.
    #[error("{0}")]
    Sink(#[source] Arc<TransportError>),
    /// A chunk could not be put aside; it was given back to the source.
    #[error("cannot put aside {origin} ({reason}): {source}")]
    Quarantine {
        /// Where the chunk was: endpoint, lane, position.
        origin: Box<str>,
        /// What is wrong with it.
        reason: Box<str>,
        /// Why it could not be kept.
        source: io::Error,
    },
}
