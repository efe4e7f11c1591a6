//! Deliveries in flight. The fate of a chunk at the sink decides how its delivery is settled.

use std::collections::VecDeque;
use std::io;

use baler_common::transport::{
    ChunkReader, Damaged, End, Fate, NotKept, Origin, Poison, PutAside, Quarantine, Settled, Token,
    Verdict,
};

use super::{RelayError, RelayStats};

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
