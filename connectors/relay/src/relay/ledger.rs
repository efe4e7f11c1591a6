//! What is in flight; what became of a chunk decides over its delivery at the source.

use std::collections::VecDeque;
use std::time::Instant;

use baler_common::transport::{
    ChunkReader, End, Fate, Origin, Settled, Token, TransportError, Verdict,
};

use super::{add, length};
use crate::RelayError;
use crate::error::{Cause, PutAside, Unfit, without_quarantine};
use crate::stats::RelayStats;

/// The source, what of it is in flight, and what became of the rest.
pub(super) struct Ledger {
    pub(super) reader: Box<dyn ChunkReader>,
    pub(super) put_aside: PutAside,
    /// By ascending ticket.
    pub(super) in_flight: VecDeque<InFlight>,
    pub(super) counts: RelayStats,
}

/// A delivery that is not settled.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) ticket: u64,
    pub(super) token: Token,
    pub(super) origin: Origin,
    pub(super) since: Instant,
}

impl Ledger {
    /// Nothing is in flight yet.
    pub(super) fn new(reader: Box<dyn ChunkReader>) -> Self {
        Self {
            reader,
            put_aside: Box::new(without_quarantine),
            in_flight: VecDeque::new(),
            counts: RelayStats::default(),
        }
    }

    /// What the ledger knows of the figures.
    pub(super) fn stats(&self) -> RelayStats {
        let oldest = self.in_flight.front();
        RelayStats {
            in_flight: u64::try_from(self.in_flight.len()).unwrap_or(u64::MAX),
            oldest_unconfirmed: oldest.map(|oldest| oldest.since.elapsed()),
            source: self.reader.stats(),
            ..self.counts.clone()
        }
    }

    /// Settles the delivery of a chunk that has its fate.
    pub(super) fn conclude(&mut self, fate: Fate, sink_failed: bool) -> Result<(), RelayError> {
        let Fate { chunk, end } = fate;
        let place = self
            .in_flight
            .binary_search_by_key(&chunk.ticket, |entry| entry.ticket);
        let Some(delivery) = place.ok().and_then(|at| self.in_flight.remove(at)) else {
            return Ok(());
        };
        let (cause, reason) = match end {
            End::Confirmed => {
                add(&mut self.counts.forwarded, 1);
                add(&mut self.counts.forwarded_bytes, length(&chunk.bytes));
                return self.settle(delivery.token, Verdict::Ack);
            }
            // On disk it outlives this process, and is sent on by this one or the next.
            End::Spooled => {
                add(&mut self.counts.spooled, 1);
                return self.settle(delivery.token, Verdict::Ack);
            }
            End::Refused(error) if !sink_failed => (Cause::Refused, error.to_string()),
            End::TooLarge { max_chunk_bytes } => {
                let bytes = chunk.bytes.len();
                let reason =
                    format!("it has {bytes} bytes, the sink takes at most {max_chunk_bytes}");
                (Cause::TooLarge, reason)
            }
            End::Refused(_) | End::Undelivered(_) => {
                add(&mut self.counts.given_back, 1);
                return self.settle(delivery.token, Verdict::Retry);
            }
        };
        let kept = self.keep(Unfit {
            bytes: &chunk.bytes,
            origin: &delivery.origin,
            meta: Some(chunk.meta),
            cause,
            reason: &reason,
        });
        let verdict = self.verdict_on_kept(&kept);
        add(&mut self.counts.refused, kept.is_ok().into());
        let settled = self.settle(delivery.token, verdict);
        kept.and(settled)
    }

    /// What the source is told of a delivery that was put aside, or could not be; counts it.
    pub(super) fn verdict_on_kept(&mut self, kept: &Result<(), RelayError>) -> Verdict {
        if kept.is_ok() {
            add(&mut self.counts.quarantined, 1);
            Verdict::Reject
        } else {
            add(&mut self.counts.given_back, 1);
            Verdict::Retry
        }
    }

    /// Puts a chunk aside.
    pub(super) fn keep(&mut self, unfit: Unfit<'_>) -> Result<(), RelayError> {
        (self.put_aside)(unfit).map_err(|source| RelayError::Quarantine {
            origin: unfit.origin.to_string().into(),
            reason: unfit.reason.into(),
            source,
        })
    }

    /// Says at the source what became of a delivery.
    pub(super) fn settle(&mut self, token: Token, verdict: Verdict) -> Result<(), RelayError> {
        match self.reader.settle(token, verdict) {
            Ok(Settled::Done) => Ok(()),
            Ok(Settled::Stale) => {
                add(&mut self.counts.stale, 1);
                Ok(())
            }
            // The delivery comes again, here or elsewhere: a copy, by its identity.
            Err(error) => self.recoverable(error),
        }
    }

    fn recoverable(&mut self, error: TransportError) -> Result<(), RelayError> {
        if !error.is_retryable() {
            return Err(RelayError::Source(error));
        }
        add(&mut self.counts.source_errors, 1);
        Ok(())
    }
}
