//! From disk: what the medium gets when it is back, and what it gets at the end.

use std::time::{Duration, Instant};

use baler_common::transport::{
    Chunk, Confirmation, Outcome, Poison, Quarantine as _, RejectReason, Rejected, RetryClass,
    TransportError, Verdict, guarded,
};

use super::{Link, Worker};
use crate::direct::Direct;
use crate::store::Front;
use crate::watch::add;

impl Worker {
    /// Sends on what is on disk.
    pub(super) fn replay(&mut self, now: Instant) {
        if !matches!(self.link, Link::Open(_)) {
            return;
        }
        if let Err(error) = self.take_confirmed(now) {
            return self.break_off(error, now);
        }
        if let Err(error) = self.offer_front(now) {
            return self.break_off(error, now);
        }
        // Media that confirm at once need no second step.
        if let Err(error) = self.take_confirmed(now) {
            return self.break_off(error, now);
        }
        let Link::Open(inner) = &self.link else {
            return;
        };
        let stalls = !self.outstanding.is_empty()
            && now.saturating_duration_since(self.progress) >= self.config.stall_after;
        if stalls && !inner.stats().blocked {
            let medium = inner.capability().medium;
            let message = "it confirms nothing of what it has";
            let error = TransportError::new("write to", medium, RetryClass::Retry, message);
            self.break_off(error, now);
        }
    }

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
                        // The file connector has passed it: this is the last chance to keep it.
                        let kept = self.refused.put_aside(Poison {
                            bytes: &damaged.bytes,
                            origin: &damaged.origin,
                            meta: None,
                            reason: &damaged.reason,
                            is_sound: false,
                        });
                        self.note_disk(kept.err());
                        continue;
                    }
                    Front::Empty => break true,
                    Front::Unknown => break false,
                },
            };
            let Some(meta) = delivery.meta else {
                self.put_aside(delivery, "its container is unknown to this version", now);
                continue;
            };
            let Link::Open(inner) = &mut self.link else {
                return Ok(());
            };
            let ticket = self.next_ticket;
            let chunk = Chunk {
                ticket,
                meta,
                bytes: delivery.bytes.clone(),
            };
            let medium = inner.capability().medium;
            let offered = guarded("write to", medium, || inner.offer(chunk));
            let reason = match offered {
                Ok(Ok(())) => {
                    self.next_ticket = self.next_ticket.wrapping_add(1);
                    if self.outstanding.is_empty() {
                        self.progress = now;
                    }
                    self.outstanding.push_back((ticket, delivery));
                    continue;
                }
                Ok(Err(Rejected { reason, .. })) => reason,
                Err(error) => RejectReason::Broken(Box::new(error)),
            };
            match reason {
                RejectReason::Full => {
                    self.next = Some(delivery);
                    return Ok(());
                }
                RejectReason::TooLarge { max_chunk_bytes } => {
                    let reason = format!("the medium takes {max_chunk_bytes} bytes a chunk");
                    self.put_aside(delivery, &reason, now);
                }
                RejectReason::Broken(error) => {
                    self.next = Some(delivery);
                    return Err(*error);
                }
            }
        };
        // Of a disk that does not even tell what it has, nothing is known to be there: all that
        // was ever counted was handed out, the rest is still pending.
        self.drained = self.outstanding.is_empty()
            && !self.store.is_writing()
            && !self.store.has_front()
            && (is_empty || self.store.is_failing());
        Ok(())
    }

    fn take_confirmed(&mut self, now: Instant) -> Result<(), TransportError> {
        let Link::Open(inner) = &mut self.link else {
            return Ok(());
        };
        let mut confirmations = Vec::new();
        let medium = inner.capability().medium;
        let result = guarded("read confirmations of", medium, || {
            inner.confirmations(&mut confirmations)
        });
        self.settle_all(confirmations, now);
        result.and_then(|result| result)
    }

    pub(super) fn settle_all(&mut self, confirmations: Vec<Confirmation>, now: Instant) {
        for Confirmation { ticket, outcome } in confirmations {
            let at = self
                .outstanding
                .binary_search_by_key(&ticket, |(ticket, _)| *ticket);
            let Some((_, delivery)) = at.ok().and_then(|at| self.outstanding.remove(at)) else {
                continue;
            };
            self.progress = now;
            match outcome {
                Outcome::Confirmed | Outcome::Spooled => {
                    self.failures = 0;
                    self.store.settle(delivery.token, Verdict::Ack);
                    self.count_gone(&delivery, |status, records| {
                        add(&mut status.stats.replayed_chunks, 1);
                        add(&mut status.stats.replayed_records, records);
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
    }

    /// The medium is away again: what it has not confirmed is read from disk once more.
    fn break_off(&mut self, error: TransportError, now: Instant) {
        let unconfirmed = std::mem::take(&mut self.outstanding).into_iter();
        for delivery in unconfirmed.map(|(_, it)| it).chain(self.next.take()) {
            self.store.settle(delivery.token, Verdict::Retry);
        }
        self.drained = false;
        self.away_since = now;
        self.note_medium(Some(error));
        let at = now + self.pause();
        let link = std::mem::replace(&mut self.link, Link::Opening);
        if let Link::Open(inner) = link {
            self.link = Link::Closed(inner, at);
        }
    }

    /// Gives the medium's writer to the owner's side when nothing is on disk any more.
    pub(super) fn return_when_drained(&mut self, now: Instant) {
        let is_empty = self.drained && self.offered == 0 && self.next.is_none();
        if !is_empty || !matches!(self.link, Link::Open(_)) {
            return;
        }
        if self.store.is_in_use() {
            self.store.clear(now + self.config.reopen_timeout, true);
            // What was counted and is not there can only be told in the end.
            self.shared.watch.update(|status| {
                add(&mut status.lost_records, status.waiting_records);
                status.waiting_records = 0;
                status.stats.waiting_bytes = 0;
            });
        }
        if let Link::Open(inner) = std::mem::replace(&mut self.link, Link::Direct) {
            self.shared.tell(|state| {
                state.returned = Some(inner);
                state.blocked = false;
                state.verdict = Some(Ok(()));
            });
        }
    }
}

/// How long the disk gets at a close, whatever the deadline.
const DISK_GRACE: Duration = Duration::from_millis(250);

impl Worker {
    /// Puts what is pending on disk, sends on what can be until the deadline, and ends.
    pub(super) fn close(&mut self, by: Instant) {
        let begun = Instant::now();
        let disk_by = by.max(begun + DISK_GRACE);
        let left = by.saturating_duration_since(begun);
        let replay_by = by - DISK_GRACE.min(left / 2);
        loop {
            let now = Instant::now();
            self.take_orders(now);
            if self.store.prepare(now).is_err() {
                break;
            }
            self.open_when_due(now);
            self.take_written(now);
            self.replay(now);
            self.spool(now, true);
            if self.drained && self.store.is_failing() {
                // The medium is back and the disk is not: chunks go straight after all.
                self.pass_pending(replay_by);
            }
            let is_pending = !self.shared.lock().pending.is_empty();
            let is_sending = matches!(self.link, Link::Open(_)) && !self.drained;
            let until = match (is_pending, is_sending) {
                (true, _) => disk_by,
                (false, true) => replay_by,
                (false, false) => break,
            };
            if until <= now {
                break;
            }
            self.shared
                .wait_for_work(Some(until.min(self.next_time(now))));
        }
        let mut error = None;
        if let Link::Open(inner) = std::mem::replace(&mut self.link, Link::Direct) {
            let medium = inner.capability().medium;
            match guarded("close", medium, move || inner.close(by)) {
                Ok(report) => {
                    self.settle_all(report.confirmations, Instant::now());
                    error = report.error;
                }
                Err(panicked) => error = Some(panicked),
            }
        }
        self.store.clear(disk_by, false);
        self.shared.tell(|state| state.end_error = error);
    }

    /// Offers what is pending to the medium itself and closes it.
    fn pass_pending(&mut self, by: Instant) {
        let Link::Open(inner) = std::mem::replace(&mut self.link, Link::Direct) else {
            return;
        };
        let mut direct = Direct::new(inner, self.shared.lock().take_pending());
        self.offered = 0;
        // What is not taken is in the parts.
        let offered = direct.offer_backlog();
        drop(offered);
        let (inner, mut chunks) = direct.into_parts();
        let medium = inner.capability().medium;
        let report = guarded("close", medium, move || inner.close(by)).unwrap_or_default();
        self.shared.tell(|state| {
            for confirmation in report.confirmations {
                chunks.retain(|chunk| chunk.ticket != confirmation.ticket);
                state.outcomes.push(confirmation);
            }
            chunks.into_iter().for_each(|chunk| state.push(chunk));
        });
    }
}
