//! The errors of both sides.

use std::convert::Infallible;

#[cfg(feature = "consumer")]
use baler_common::record::ReadError;
#[cfg(feature = "consumer")]
use baler_common::transport::TransportError;
use baler_common::transport::uri::UriError;
use baler_monitoring::StartError;

/// A producer or a consumer cannot start, or a consumer cannot continue.
///
/// No message contains credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The consumer of a batch has ended. The batch is delivered again, to the next consumer.
    #[cfg(feature = "consumer")]
    #[error("the consumer of this batch has ended; the batch is delivered again")]
    Closed,
    /// The medium failed permanently, or a chunk could not be put into quarantine. Unacknowledged
    /// chunks are delivered again.
    #[cfg(feature = "consumer")]
    #[error(transparent)]
    Consume(#[from] baler_analysis::AnalysisError),
    /// The handler returned an error, and there is no quarantine. The batch is delivered again.
    #[cfg(feature = "consumer")]
    #[error("the handler refused a batch: {0}; it is delivered again")]
    Handler(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The receiving end of a medium cannot be opened.
    #[cfg(feature = "consumer")]
    #[error("{endpoint}: {source}")]
    Open {
        /// The URI without its secrets.
        endpoint: Box<str>,
        /// The cause.
        source: TransportError,
    },
    /// The quarantine cannot be used.
    #[cfg(feature = "consumer")]
    #[error("the quarantine {place}: {source}")]
    Quarantine {
        /// The folder, or the URI without its secrets.
        place: Box<str>,
        /// The cause.
        source: std::io::Error,
    },
    /// The consumer's type cannot hold a record: a field is missing and has no default, or has
    /// another type. The chunk is delivered again, to the next version of the consumer.
    #[cfg(feature = "consumer")]
    #[error("{origin}, record {position}: {source}")]
    Read {
        /// The origin of the chunk.
        origin: Box<str>,
        /// The record's position in the chunk.
        position: u32,
        /// The cause.
        source: ReadError,
    },
    /// No medium has the URI's scheme, or a setting in it is wrong.
    #[error("{endpoint}: {source}")]
    Setting {
        /// The URI without its secrets.
        endpoint: Box<str>,
        /// The cause.
        source: UriError,
    },
    /// A setting of the controller is wrong, or its thread cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The thread of a stream cannot be started.
    #[cfg(feature = "stream")]
    #[error("the consumer's thread cannot be started: {0}")]
    Thread(#[source] std::io::Error),
    /// The text is not a URI.
    #[error(transparent)]
    Uri(#[from] UriError),
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
