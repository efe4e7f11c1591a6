//! The failures of a relay.

use std::io;
use std::sync::Arc;

use baler_common::transport::TransportError;

/// The reason why a relay cannot go on. [`Relay::close`](super::Relay::close) drains the chunks in
/// flight, or gives them back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RelayError {
    /// The source failed, and trying again cannot help.
    #[error("{0}")]
    Source(#[source] TransportError),
    /// The sink cannot be opened, and trying again cannot help.
    #[error("{0}")]
    Sink(#[source] Arc<TransportError>),
    /// A chunk could not be put aside; it was given back to the source.
    #[error("cannot put aside {origin} ({reason}): {source}")]
    Quarantine {
        /// The place of the chunk: endpoint, lane, position.
        origin: Box<str>,
        /// The reason why the chunk cannot be passed on.
        reason: Box<str>,
        /// The reason why the chunk could not be kept.
        source: io::Error,
    },
}
