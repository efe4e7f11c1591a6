//! Sends chunks to the medium: first the chunks on disk, then the pending chunks.

use std::time::Instant;

use crate::quarantine::{Poison, Quarantine as _};
use baler_common::transport::{
    Chunk, ChunkMeta, DeliveryReport, Outcome, RejectReason, Rejected, RetryClass, TransportError,
    Verdict, guarded,
};
use bytes::Bytes;

use super::{Medium, Sent, Worker};
use crate::spool::store::Front;

impl Worker {
    /// Sends as many chunks as the medium accepts: the chunks on disk first, then the pending
    /// chunks.
    pub(super) fn send(&mut self, now: Instant) {
        if !matches!(self.medium, Medium::Open(_)) {
            return;
        }
        let sent = self
            .take_confirmed(now)
            .and_then(|()| self.offer_front(now))
            .and_then(|()| self.offer_pending(now))
            // Media that confirm at once need no second step.
            .and_then(|()| self.take_confirmed(now));
        if let Err(error) = sent {
            return self.break_off(error, now, now);
        }
        if let Some((since, why)) = self.stalled(now) {
            let error = self.error_of_medium(why);
            self.break_off(error, since, now);
        }
    }

    /// Returns the time since which the medium stalls, and the reason, if that lasts for too long.
    fn stalled(&mut self, now: Instant) -> Option<(Instant, &'static str)> {
        let Medium::Open(inner) = &self.medium else {
            return None;
        };
        if self.outstanding.is_empty() {
            self.progress = now;
        }
        let is_blocked = inner.stats().blocked;
        self.blocked_since = is_blocked.then(|| self.blocked_since.unwrap_or(now));
        let Some(since) = self.blocked_since else {
            let stalls = now.duration_since(self.progress) >= self.config.stall_after;
            return stalls.then_some((self.progress, "it confirms nothing of what it has"));
        };
        // Chunks on disk can wait there.
        let waits = self.drained && !self.state.lock().pending.is_empty();
        let lasts = now.duration_since(since) >= self.config.spool_after;
        (waits && lasts).then_some((since, "it asks to wait"))
    }

    fn error_of_medium(&self, message: impl Into<Box<str>>) -> TransportError {
        let medium = match &self.medium {
            Medium::Open(inner) | Medium::Closed(inner, _) => inner.capability().medium,
            Medium::Away => "medium",
        };
        TransportError::new("write to", medium, RetryClass::Retry, message)
    }

    /// Offers a chunk to the medium. Returns the ticket that the chunk has in `outstanding`.
    fn offer(&mut self, meta: ChunkMeta, bytes: Bytes, now: Instant) -> Result<u64, RejectReason> {
        let Medium::Open(inner) = &mut self.medium else {
            return Err(RejectReason::Full);
        };
        let ticket = self.next_ticket;
        let chunk = Chunk {
            ticket,
            meta,
            bytes,
        };
        let medium = inner.capability().medium;
        match guarded("write to", medium, || inner.offer(chunk)) {
            Ok(Ok(())) => {
                self.next_ticket = self.next_ticket.wrapping_add(1);
                if self.outstanding.is_empty() {
                    self.progress = now;
                }
                Ok(ticket)
            }
            Ok(Err(Rejected { reason, .. })) => Err(reason),
            Err(error) => Err(RejectReason::Broken(Box::new(error))),
        }
    }

    /// Offers the chunks on disk, and finds out whether any chunk is left there.
    fn offer_front(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.pause_until.is_some_and(|until| until > now) {
            return Ok(());
        }
        self.pause_until = None;
        let is_empty = loop {
            let delivery = match self.next.take() {
                Some(delivery) => delivery,
                None => match self.store.front(now) {
                    Front::Chunk(delivery) => delivery,
                    Front::Damaged(damaged) => {
                        // The file connector does not return it again: this is the last chance to
                        // keep it.
                        let kept = self.refused.put_aside(Poison::damaged(&damaged));
                        if let Err(error) = kept {
                            self.store.note(self.store.disk_error("write to", error));
                        }
                        continue;
                    }
                    Front::Empty => break true,
                    Front::Unknown => break false,
                },
            };
            self.drained = false;
            let Some(meta) = delivery.meta else {
                self.put_aside(delivery, "its container is unknown to this version", now);
                continue;
            };
            match self.offer(meta, delivery.bytes.clone(), now) {
                Ok(ticket) => self.outstanding.push_back((ticket, Sent::Disk(delivery))),
                Err(RejectReason::Full) => {
                    self.next = Some(delivery);
                    return Ok(());
                }
                Err(RejectReason::TooLarge { max_chunk_bytes }) => {
                    let reason = format!("the medium takes {max_chunk_bytes} bytes a chunk");
                    self.put_aside(delivery, &reason, now);
                }
                Err(RejectReason::Broken(error)) => {
                    self.next = Some(delivery);
                    return Err(*error);
                }
            }
        };
        // A disk that cannot be read holds no counted chunk that was not handed out. Chunks that
        // were not counted are still pending.
        self.drained = !matches!(self.outstanding.front(), Some((_, Sent::Disk(_))))
            && !self.store.is_writing()
            && !self.store.has_front()
            && (is_empty || self.store.is_failing());
        if self.drained && self.store.is_in_use() {
            self.store.clear(now + self.config.reopen_timeout, true);
            // Counted chunks that are missing are known as lost only when nothing else is left.
            self.state.watch.update(|status| {
                status.lost_records += status.waiting_records;
                status.waiting_records = 0;
                status.stats.waiting_bytes = 0;
            });
        }
        Ok(())
    }

    /// Offers the pending chunks, once no chunk is left on disk.
    fn offer_pending(&mut self, now: Instant) -> Result<(), TransportError> {
        if !self.drained {
            return Ok(());
        }
        let (generation, chunks) = {
            let state = self.state.lock();
            let new = state.pending.iter().skip(self.offered).cloned();
            (state.generation, new.collect::<Vec<_>>())
        };
        if generation != self.generation {
            // The next step handles the owner's order first.
            return Ok(());
        }
        for chunk in chunks {
            let sent = Sent::Owner {
                generation,
                ticket: chunk.ticket,
            };
            match self.offer(chunk.meta, chunk.bytes, now) {
                Ok(ticket) => {
                    self.outstanding.push_back((ticket, sent));
                    self.offered += 1;
                }
                Err(RejectReason::Full) => break,
                Err(RejectReason::Broken(error)) => return Err(*error),
                Err(RejectReason::TooLarge { max_chunk_bytes }) => {
                    // Only the owner can split the chunk.
                    let error = self.error_of_medium(format!(
                        "it takes {max_chunk_bytes} bytes a chunk, less than before it was away"
                    ));
                    self.decide(Err(error));
                    break;
                }
            }
        }
        Ok(())
    }

    fn take_confirmed(&mut self, now: Instant) -> Result<(), TransportError> {
        let Medium::Open(inner) = &mut self.medium else {
            return Ok(());
        };
        let mut delivery_reports = Vec::new();
        let medium = inner.capability().medium;
        let result = guarded("read confirmations of", medium, || {
            inner.delivery_reports(&mut delivery_reports)
        });
        self.settle_all(delivery_reports, now);
        result.and_then(|result| result)
    }

    fn settle_all(&mut self, delivery_reports: Vec<DeliveryReport>, now: Instant) {
        let mut outcomes = Vec::new();
        for DeliveryReport { ticket, outcome } in delivery_reports {
            let at = self
                .outstanding
                .binary_search_by_key(&ticket, |(ticket, _)| *ticket);
            let Some((_, sent)) = at.ok().and_then(|at| self.outstanding.remove(at)) else {
                continue;
            };
            self.progress = now;
            if matches!(outcome, Outcome::Confirmed | Outcome::Spooled) {
                self.backoff.reset();
                self.away_since = None;
                self.has_moved = true;
            }
            let delivery = match sent {
                Sent::Disk(delivery) => delivery,
                Sent::Owner { generation, ticket } => {
                    if generation == self.generation {
                        outcomes.push(DeliveryReport { ticket, outcome });
                    }
                    continue;
                }
            };
            match outcome {
                Outcome::Confirmed | Outcome::Spooled => {
                    self.store.settle(delivery.token, Verdict::Ack);
                    self.count_gone(&delivery, |status, records| {
                        status.stats.replayed_chunks += 1;
                        status.stats.replayed_records += records;
                    });
                }
                Outcome::Refused(error) if error.class == RetryClass::Final => {
                    self.put_aside(delivery, &error.to_string(), now);
                }
                Outcome::Refused(error) => {
                    let pause = self.pause();
                    self.note_medium(Some(error));
                    self.give_back(&delivery, pause, now);
                }
            }
        }
        if !outcomes.is_empty() {
            self.conclude(outcomes);
        }
    }

    /// Passes outcomes to the owner, unless the owner has reopened meanwhile.
    pub(super) fn conclude(&mut self, outcomes: Vec<DeliveryReport>) {
        let generation = self.generation;
        let concluded = self.state.tell(|state| {
            if state.generation != generation {
                return 0;
            }
            let concluded = outcomes.into_iter().map(|it| state.conclude(it));
            concluded.filter(|it| *it).count()
        });
        // When the disk fails, the offers begin anew, and chunks that it has may be reported later.
        self.offered = self.offered.saturating_sub(concluded);
    }

    /// Marks the medium as away since this time. Chunks that it has not confirmed are sent again.
    fn break_off(&mut self, error: TransportError, since: Instant, now: Instant) {
        // A medium that is opened again and again without a confirmation is away all the time.
        if self.away_since.is_none() || self.state.lock().pending.is_empty() {
            self.away_since = Some(since);
        }
        self.take_back();
        self.note_medium(Some(error));
        let at = now + self.pause();
        if let Medium::Open(inner) = std::mem::replace(&mut self.medium, Medium::Away) {
            self.medium = Medium::Closed(inner, at);
        }
    }

    /// Takes back the chunks that the medium has not confirmed.
    fn take_back(&mut self) {
        self.drained = false;
        for (_, sent) in std::mem::take(&mut self.outstanding) {
            match sent {
                Sent::Disk(delivery) => self.store.settle(delivery.token, Verdict::Retry),
                Sent::Owner { .. } => self.offered = 0,
            }
        }
        if let Some(delivery) = self.next.take() {
            self.store.settle(delivery.token, Verdict::Retry);
        }
    }

    /// Closes the medium's writer for good, by this time, and takes back the chunks that it has not
    /// confirmed. Returns the error, if there was one.
    pub(super) fn close_medium(&mut self, by: Instant) -> Option<TransportError> {
        let Medium::Open(inner) = std::mem::replace(&mut self.medium, Medium::Away) else {
            return None;
        };
        let medium = inner.capability().medium;
        let closed = guarded("close", medium, move || inner.close(by));
        let mut report = match closed {
            Ok(report) => report,
            Err(panicked) => {
                self.take_back();
                return Some(panicked);
            }
        };
        // Ignore a temporary refusal: there is no later attempt, and the disk keeps the chunk.
        report.delivery_reports.retain(|it| {
            !matches!(&it.outcome, Outcome::Refused(error) if error.class != RetryClass::Final)
        });
        self.settle_all(report.delivery_reports, Instant::now());
        self.take_back();
        report.error
    }
}
