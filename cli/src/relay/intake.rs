//! Takes chunks from the source into the outbox.

use std::time::{Duration, Instant};

use baler_common::transport::{Chunk, Delivery, Received, TransportError};
use baler_connector_file::quarantine::Poison;

use super::error::RelayError;
use super::ledger::{InFlight, Ledger};
use super::{FIRST_PAUSE, LONGEST_PAUSE, Relay, Step};

/// The most chunks that are taken before the outbox is driven. They share the cost of a turn. The
/// first of them waits only while the others are fetched.
const BATCH: usize = 32;

/// The pause after a failure from which the source recovers by itself.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);

impl Relay {
    /// Takes the available chunks of the source, as far as there is room.
    pub(super) fn receive(&mut self, by: Instant) -> Result<Step, RelayError> {
        self.ask();
        let mut until = self.patience(by);
        let mut step = Step::Idle;
        for _ in 0..BATCH {
            let received = self.ledger.reader.receive(until);
            self.look_at_progress(&received);
            match received {
                Ok(Received::Chunk(delivery)) => self.admit(delivery)?,
                Ok(Received::Damaged(damaged)) => {
                    self.ledger.counts.damaged += 1;
                    self.ledger.keep_damaged(&damaged)?;
                }
                Ok(Received::End) => {
                    self.ended = true;
                    self.ledger.counts.reached_end = Some(true);
                    return Ok(step);
                }
                Ok(Received::Idle) => break,
                // A lane goes to another reader. Its chunks in flight are settled as their
                // confirmations come. Settlements that are too late for the medium are stale, and
                // the other reader gets these chunks again.
                Ok(Received::Assigned { .. } | Received::Revoked { .. }) => continue,
                Err(error) if error.is_retryable() => {
                    self.ledger.counts.source_errors += 1;
                    // A source may fail at once, again and again: do not spin.
                    self.wait(by.min(Instant::now() + PAUSE_AFTER_ERROR));
                    return Ok(step);
                }
                Err(error) => return Err(RelayError::Source(error)),
            }
            step = Step::Received;
            self.ask();
            if self.demand.paused {
                break;
            }
            // Do not wait for the rest of the batch.
            until = Instant::now();
        }
        self.pause = match step {
            Step::Received => FIRST_PAUSE,
            _ => (self.pause * 2).min(LONGEST_PAUSE),
        };
        if self.demand.paused && step == Step::Idle {
            // The source is paused: only the sink can change anything.
            self.wait(self.until(by.min(Instant::now() + LONGEST_PAUSE)));
        }
        Ok(step)
    }

    /// Notes whether the relay waits for the source.
    fn look_at_progress(&mut self, received: &Result<Received, TransportError>) {
        let Ledger { reader, counts, .. } = &mut self.ledger;
        let waits_for = || reader.waits_for().filter(|_| !self.demand.paused);
        let waiting = &mut counts.source_waiting;
        waiting.received(received, waits_for, Instant::now);
    }

    /// Returns the time until which to wait for the source.
    ///
    /// A confirmation of the sink does not wake a reader that waits. So the waits are short while
    /// confirmations are missing, and grow while nothing happens.
    fn patience(&mut self, by: Instant) -> Instant {
        let now = Instant::now();
        self.has_changed = self.has_changed || self.changes.try_recv().is_ok();
        if self.has_changed || self.demand.paused {
            return now;
        }
        let by = self.until(by);
        if self.ledger.in_flight.is_empty() {
            return by;
        }
        by.min(now + self.pause)
    }

    /// Lets the source hand out chunks while there is room for them, and pauses it otherwise.
    fn ask(&mut self) {
        let pause = self.has_enough() || !self.outbox.has_room();
        if pause != self.demand.paused {
            self.demand.paused = pause;
            let chunks = if pause { 0 } else { self.demand.max };
            self.ledger.reader.set_demand(chunks);
        }
    }

    /// Passes a delivery on to the outbox.
    fn admit(&mut self, delivery: Delivery) -> Result<(), RelayError> {
        let counts = &mut self.ledger.counts;
        counts.received += 1;
        counts.received_bytes += delivery.bytes.len() as u64;
        counts.redelivered += u64::from(delivery.redelivered);
        let meta = match self.identities.of(&delivery) {
            Ok(meta) => meta,
            Err(error) => {
                let poison = Poison {
                    bytes: &delivery.bytes,
                    origin: &delivery.origin,
                    meta: None,
                    reason: &error.to_string(),
                    is_sound: false,
                    peer: None,
                };
                return self.ledger.put_aside(delivery.token, poison);
            }
        };
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.ledger.in_flight.push_back(InFlight {
            ticket,
            token: delivery.token,
            origin: delivery.origin,
        });
        let chunk = Chunk {
            ticket,
            meta,
            bytes: delivery.bytes,
        };
        self.outbox.push(chunk, Instant::now());
        Ok(())
    }
}
