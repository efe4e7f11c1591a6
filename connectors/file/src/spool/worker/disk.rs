//! Puts the pending chunks on disk while the medium is away, and settles chunks that leave the
//! disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::quarantine::{Poison, Quarantine as _};
use baler_common::transport::{
    Chunk, Delivery, DeliveryReport, Outcome, RetryClass, TransportError, Verdict,
};

use super::{Medium, Worker};
use crate::spool::state::{SpoolStatus, take};

impl Worker {
    /// Whether new chunks go to disk: the medium has been away for long enough, or other chunks on
    /// disk come before them.
    fn is_spooling(&self, now: Instant) -> bool {
        match self.medium {
            // While the medium takes chunks from disk, new chunks go to disk after them. Once it
            // has all, new chunks wait for its confirmation, which takes one round trip. Otherwise
            // the chunks of a sender that is never idle would always go through the disk.
            Medium::Open(_) => self.store.has_front() || self.next.is_some(),
            Medium::Away | Medium::Closed(..) => {
                let lasts = |since| now.duration_since(since) >= self.config.spool_after;
                self.store.has_front()
                    || self.store.is_writing()
                    || self.away_since.is_some_and(lasts)
            }
        }
    }

    /// Offers pending chunks to the disk, unless they go to the medium.
    pub(super) fn spool(&mut self, now: Instant, force: bool) {
        if self.drained || !(force || self.is_spooling(now)) {
            return;
        }
        let new: Vec<Chunk> = {
            let state = self.state.lock();
            state.pending.iter().skip(self.offered).cloned().collect()
        };
        if new.is_empty() || !self.store.ensure_writable(now) {
            return;
        }
        for chunk in new {
            if !self.store.offer(chunk, self.generation, now) {
                break;
            }
            self.offered += 1;
        }
        if self.store.is_failing() {
            self.offered = 0;
        }
    }

    /// Reports the chunks that are on disk now to the owner.
    pub(super) fn take_written(&mut self, now: Instant) {
        let written = self.store.written(now);
        let written = written.iter().filter(|it| it.generation == self.generation);
        let outcomes: Vec<_> = written
            .map(|flight| DeliveryReport {
                ticket: flight.ticket,
                outcome: Outcome::Spooled,
            })
            .collect();
        if !outcomes.is_empty() {
            self.conclude(outcomes);
        }
        if self.store.is_failing() && !self.drained {
            self.offered = 0;
        }
    }

    /// Decides whether chunks are accepted: the medium or the disk must work.
    pub(super) fn judge(&mut self, now: Instant) {
        let (undecided, failed, waits) = {
            let state = self.state.lock();
            (
                state.verdict.is_none(),
                matches!(state.verdict, Some(Err(_))),
                state.pending.len() > self.offered,
            )
        };
        if failed {
            // The owner reopens when it wants a new verdict.
            return;
        }
        let is_usable = matches!(self.medium, Medium::Open(_)) && !self.store.is_unreadable();
        if is_usable {
            if undecided {
                self.decide(Ok(()));
            }
        } else if self.is_spooling(now) && (undecided || (waits && self.store.is_failing())) {
            if undecided && self.store.ensure_writable(now) {
                self.decide(Ok(()));
            } else {
                self.decide(Err(self.stuck()));
            }
        }
    }

    /// Returns the error for a medium and a disk that both accept no chunks.
    fn stuck(&self) -> TransportError {
        let status = self.state.watch.status();
        let told = |error: &Option<Arc<TransportError>>| {
            error
                .as_ref()
                .map_or_else(|| "the reason is not known".to_owned(), ToString::to_string)
        };
        let message = format!(
            "{}; and the spool does not take chunks: {}",
            told(&status.medium_error),
            told(&status.disk_error)
        );
        let endpoint = self.config.folder.display().to_string();
        TransportError::new("spool in", endpoint, RetryClass::Retry, message)
    }

    pub(super) fn decide(&self, verdict: Result<(), TransportError>) {
        let verdict = verdict.map_err(Arc::new);
        self.state.tell(|state| state.verdict = Some(verdict));
    }

    /// Counts a chunk that has left the disk.
    pub(super) fn count_gone(
        &self,
        delivery: &Delivery,
        change: impl FnOnce(&mut SpoolStatus, u64),
    ) {
        let records = delivery.meta.map_or(0, |meta| u64::from(meta.records));
        self.state.watch.update(|status| {
            take(&mut status.stats.waiting_chunks, 1);
            take(&mut status.stats.waiting_bytes, delivery.bytes.len() as u64);
            take(&mut status.waiting_records, records);
            change(status, records);
        });
    }

    pub(super) fn give_back(&mut self, delivery: &Delivery, pause: Duration, now: Instant) {
        self.store.settle(delivery.token, Verdict::Retry);
        self.pause_until = Some(now + pause);
    }

    /// Keeps a chunk that can never be delivered.
    pub(super) fn put_aside(&mut self, delivery: Delivery, reason: &str, now: Instant) {
        let kept = self.refused.put_aside(Poison {
            bytes: &delivery.bytes,
            origin: &delivery.origin,
            meta: delivery.meta,
            reason,
            is_sound: true,
            peer: None,
        });
        match kept {
            Ok(_) => {
                self.store.settle(delivery.token, Verdict::Reject);
                self.count_gone(&delivery, |status, records| {
                    status.refused_chunks += 1;
                    status.refused_records += records;
                });
            }
            Err(error) => {
                // The chunk stays in place; sooner or later there is room for it.
                self.store.note(self.store.disk_error("write to", error));
                let pause = self.pause();
                self.give_back(&delivery, pause, now);
            }
        }
    }
}
