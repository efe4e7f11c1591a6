//! The counts of a relay, and the errors that end it.

use std::io;
use std::sync::Arc;

use baler_common::transport::{OutboxStats, ReaderStats, TransportError, Waiting};

/// The counts of a relay, in chunks unless the name says otherwise.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RelayStats {
    /// Deliveries of the source, repeated ones included.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Confirmed by the sink, and acknowledged at the source.
    pub forwarded: u64,
    /// Their bytes.
    pub forwarded_bytes: u64,
    /// Put on local disk by the sink's spool, and acknowledged at the source.
    pub spooled: u64,
    /// Put aside, and rejected at the source.
    pub quarantined: u64,
    /// Given back to the source, which delivers them again.
    pub given_back: u64,
    /// Received and not settled.
    pub in_flight: u64,
    /// Quarantined chunks that the sink refused, for their size or for another reason.
    pub refused: u64,
    /// Pieces that the source could tell are no chunk; they are no deliveries.
    pub damaged: u64,
    /// Deliveries that the source marked as repeated.
    pub redelivered: u64,
    /// Chunks of Kieker's container that came without an identity and were given one.
    pub identities_made: u64,
    /// Settlements that came too late: the delivery had gone to another reader.
    pub stale: u64,
    /// Failures of the source from which it recovers by itself.
    pub source_errors: u64,
    /// The figures of the outbox before the sink.
    pub outbox: OutboxStats,
    /// The figures of the source.
    pub source: ReaderStats,
    /// Since when nothing came although the source is not at its end. While there is no room for
    /// more, the sink is waited for, and not the source.
    pub source_waiting: Waiting,
}

impl RelayStats {
    /// Whether every delivery is accounted for: received = forwarded + spooled + quarantined +
    /// given back + in flight.
    pub fn adds_up(&self) -> bool {
        let parts = [
            self.forwarded,
            self.spooled,
            self.quarantined,
            self.given_back,
            self.in_flight,
        ];
        let accounted = parts
            .into_iter()
            .fold(0, |sum: u64, part| sum.saturating_add(part));
        self.received == accounted
    }
}

/// Why a relay cannot go on. [`Relay::close`](crate::Relay::close) drains what is in flight, or gives
/// it back.
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
        /// Why it cannot be passed on.
        reason: Box<str>,
        /// Why it could not be kept.
        source: io::Error,
    },
}
