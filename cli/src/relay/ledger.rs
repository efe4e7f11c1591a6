//! Deliveries in flight. The fate of a chunk at the sink decides how its delivery is settled.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use baler_common::transport::{
    ChunkReader, Damaged, End, Fate, Origin, OutboxStats, ReaderStats, Settled, Token, Verdict,
    Waiting,
};
use baler_connector_file::quarantine::{NotKept, Poison, PutAside, Quarantine};

use super::error::RelayError;

/// The reason why a sound chunk is not discarded.
const NO_QUARANTINE: &str = "there is no quarantine, and it would be lost without one";

/// The source, its deliveries in flight, and the counts.
pub(super) struct Ledger {
    pub(super) reader: Box<dyn ChunkReader>,
    pub(super) quarantine: Option<Box<dyn Quarantine>>,
    /// The deliveries in flight, by ascending ticket.
    pub(super) in_flight: VecDeque<InFlight>,
    pub(super) counts: RelayStats,
}

/// A delivery that is not settled.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) ticket: u64,
    pub(super) token: Token,
    pub(super) origin: Origin,
}

/// The counts of a relay, in chunks unless the name says otherwise.
#[derive(Debug, Clone, Default)]
pub(crate) struct RelayStats {
    /// Deliveries of the source, repeated ones included.
    pub(crate) received: u64,
    /// The bytes of these deliveries.
    pub(crate) received_bytes: u64,
    /// Chunks that the sink confirmed; they are acknowledged at the source.
    pub(crate) forwarded: u64,
    /// The bytes of these chunks.
    pub(crate) forwarded_bytes: u64,
    /// Chunks that the sink's spool put on local disk; they are acknowledged at the source.
    pub(crate) spooled: u64,
    /// Chunks that were put aside and rejected at the source.
    pub(crate) quarantined: u64,
    /// Chunks that were given back to the source, which delivers them again.
    pub(crate) given_back: u64,
    /// Chunks that were received and not settled.
    pub(crate) in_flight: u64,
    /// Quarantined chunks that the sink refused, for their size or for another reason.
    pub(crate) refused: u64,
    /// Pieces that the source recognized as no chunk; they are no deliveries.
    pub(crate) damaged: u64,
    /// Quarantined chunks and damaged pieces of which only a count is left, by reason. The source's
    /// own count ([`ReaderStats::unreported`]) is not among them.
    pub(crate) not_kept: BTreeMap<NotKept, u64>,
    /// Deliveries that the source marked as repeated.
    pub(crate) redelivered: u64,
    /// Chunks of Kieker's container that came without an identity and got one.
    pub(crate) identities_made: u64,
    /// Settlements that came too late: the delivery had gone to another reader.
    pub(crate) stale: u64,
    /// Failures of the source from which it recovers by itself.
    pub(crate) source_errors: u64,
    /// Whether the source is at its end; `None` if it has no end.
    pub(crate) reached_end: Option<bool>,
    /// The figures of the outbox before the sink.
    pub(crate) outbox: OutboxStats,
    /// The figures of the source.
    pub(crate) source: ReaderStats,
    /// The wait for a source that is not at its end. While the relay has no room, it waits for the
    /// sink and not for the source.
    pub(crate) source_waiting: Waiting,
}

impl RelayStats {
    /// Returns, by reason, how many poison messages left only a count.
    pub(crate) fn not_kept(&self) -> BTreeMap<NotKept, u64> {
        let mut counts = self.not_kept.clone();
        if self.source.unreported > 0 {
            counts.insert(NotKept::Unreported, self.source.unreported);
        }
        counts
    }

    /// Whether every delivery is accounted for: received = forwarded + spooled + quarantined +
    /// given back + in flight.
    pub(crate) fn adds_up(&self) -> bool {
        let settled = self.forwarded + self.spooled + self.quarantined + self.given_back;
        self.received == settled + self.in_flight
    }
}

impl Ledger {
    /// Creates a ledger with nothing in flight.
    pub(super) fn new(reader: Box<dyn ChunkReader>) -> Self {
        let counts = RelayStats {
            reached_end: reader.capability().ends.then_some(false),
            ..RelayStats::default()
        };
        Self {
            reader,
            quarantine: None,
            in_flight: VecDeque::new(),
            counts,
        }
    }

    /// Returns the counts of the ledger and the figures of the source.
    pub(super) fn stats(&self) -> RelayStats {
        RelayStats {
            in_flight: self.in_flight.len() as u64,
            source: self.reader.stats(),
            ..self.counts.clone()
        }
    }

    /// Settles the delivery of a chunk according to its fate.
    pub(super) fn conclude(&mut self, fate: Fate, sink_failed: bool) -> Result<(), RelayError> {
        let Fate { chunk, end } = fate;
        let index = self
            .in_flight
            .binary_search_by_key(&chunk.ticket, |entry| entry.ticket);
        let delivery = index.ok().and_then(|index| self.in_flight.remove(index));
        let delivery = delivery.expect("the outbox concludes each chunk in flight once");
        let reason = match end {
            End::Confirmed => {
                self.counts.forwarded += 1;
                self.counts.forwarded_bytes += chunk.bytes.len() as u64;
                return self.settle(delivery.token, Verdict::Ack);
            }
            // A chunk on disk survives the end of this process. This process or the next one sends
            // it on.
            End::Spooled => {
                self.counts.spooled += 1;
                return self.settle(delivery.token, Verdict::Ack);
            }
            End::Refused(error) if !sink_failed => error.to_string(),
            End::TooLarge { max_chunk_bytes } => format!(
                "it has {} bytes, the sink takes at most {max_chunk_bytes}",
                chunk.bytes.len()
            ),
            End::Refused(_) | End::Undelivered(_) => {
                self.counts.given_back += 1;
                return self.settle(delivery.token, Verdict::Retry);
            }
        };
        let poison = Poison {
            bytes: &chunk.bytes,
            origin: &delivery.origin,
            meta: Some(chunk.meta),
            reason: &reason,
            is_sound: true,
            peer: None,
        };
        let kept = self.put_aside(delivery.token, poison);
        self.counts.refused += u64::from(kept.is_ok());
        kept
    }

    /// Puts a delivery aside and rejects it at the source, or gives it back if that fails.
    pub(super) fn put_aside(&mut self, token: Token, poison: Poison<'_>) -> Result<(), RelayError> {
        let kept = self.keep(poison);
        let (count, verdict) = match kept {
            Ok(()) => (&mut self.counts.quarantined, Verdict::Reject),
            Err(_) => (&mut self.counts.given_back, Verdict::Retry),
        };
        *count += 1;
        let settled = self.settle(token, verdict);
        kept.and(settled)
    }

    /// Keeps damage, and settles it if the medium has not skipped it.
    pub(super) fn keep_damaged(&mut self, damaged: &Damaged) -> Result<(), RelayError> {
        let kept = self.keep(Poison::damaged(damaged));
        let settled = damaged.token.map_or(Ok(()), |token| {
            let verdict = if kept.is_ok() {
                Verdict::Reject
            } else {
                Verdict::Retry
            };
            self.settle(token, verdict)
        });
        kept.and(settled)
    }

    /// Keeps bytes that cannot be passed on. Without a quarantine, a sound chunk is an error, and
    /// other bytes are discarded.
    pub(super) fn keep(&mut self, poison: Poison<'_>) -> Result<(), RelayError> {
        let kept = match &mut self.quarantine {
            Some(quarantine) => quarantine.put_aside(poison),
            None if poison.is_sound => Err(io::Error::other(NO_QUARANTINE)),
            None => Ok(PutAside::Counted(NotKept::NoQuarantine)),
        };
        let put_aside = kept.map_err(|source| RelayError::Quarantine {
            origin: poison.origin.to_string().into(),
            reason: poison.reason.into(),
            source,
        })?;
        if let PutAside::Counted(why) = put_aside {
            *self.counts.not_kept.entry(why).or_default() += 1;
        }
        Ok(())
    }

    /// Settles a delivery at the source.
    pub(super) fn settle(&mut self, token: Token, verdict: Verdict) -> Result<(), RelayError> {
        match self.reader.settle(token, verdict) {
            Ok(Settled::Done) => Ok(()),
            Ok(Settled::Stale) => {
                self.counts.stale += 1;
                Ok(())
            }
            // The delivery comes again, here or at another reader. Its identity shows that it is a
            // copy.
            Err(error) if error.is_retryable() => {
                self.counts.source_errors += 1;
                Ok(())
            }
            Err(error) => Err(RelayError::Source(error)),
        }
    }
}

#[cfg(test)]
mod tests;
