//! The end of a relay: within one deadline, and with a report that adds up.

use std::time::{Duration, Instant};

use baler_common::transport::{Connection, TransportError};

use super::Relay;
use crate::RelayError;
use crate::stats::RelayStats;

/// The part of the time until the deadline that is left to the source: its last acknowledgements
/// must go out.
const PART_FOR_SOURCE: u32 = 8;

/// That time at most.
const MOST_FOR_SOURCE: Duration = Duration::from_millis(500);

/// How a relay ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct RelayReport {
    /// What was done; nothing is in flight any more.
    pub stats: RelayStats,
    /// What went wrong while draining, if anything did.
    pub error: Option<RelayError>,
    /// What the source told when it was closed, if anything went wrong.
    pub source_error: Option<TransportError>,
    /// What the sink told when it was closed, if anything went wrong.
    pub sink_error: Option<TransportError>,
}

impl Relay {
    /// Takes nothing more, waits for the confirmations of what is in flight until `by`, gives the
    /// rest back to the source, and closes both.
    ///
    /// The deadline is passed only as far as either connector passes its own.
    pub fn close(mut self, by: Instant) -> RelayReport {
        let now = Instant::now();
        let for_source = by.saturating_duration_since(now) / PART_FOR_SOURCE;
        let sink_by = by
            .checked_sub(for_source.min(MOST_FOR_SOURCE))
            .unwrap_or(by);
        self.ledger.reader.set_demand(0);
        let mut error = None;
        while error.is_none() && !self.ledger.in_flight.is_empty() && Instant::now() < sink_by {
            error = self.drain(sink_by).err();
        }
        let outbox = self.outbox.stats();
        let failed = outbox.connection == Connection::Failed;
        let sink_error = self.outbox.close(sink_by, &mut self.fates);
        for fate in self.fates.drain(..) {
            let concluded = self.ledger.conclude(fate, failed);
            error = error.or_else(|| concluded.err());
        }
        let stats = RelayStats {
            identities_made: self.identities.made(),
            outbox,
            ..self.ledger.stats()
        };
        let source_error = self.ledger.reader.close(by).error;
        RelayReport {
            stats,
            error,
            source_error,
            sink_error,
        }
    }
}
