//! What a relay has done and holds.

use std::time::Duration;

use baler_common::transport::{OutboxStats, ReaderStats, Waiting};

/// What a relay has done and holds. Everything is counted in chunks where nothing else is said.
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
    /// Those of the quarantined that the sink refused, for their size or for another reason.
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
    /// How long the oldest chunk in flight has been here.
    pub oldest_unconfirmed: Option<Duration>,
    /// What the outbox in front of the sink has done and holds.
    pub outbox: OutboxStats,
    /// What the source knows of its medium.
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
