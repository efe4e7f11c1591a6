//! The end: everything on disk that is not confirmed.

use std::time::{Duration, Instant};

use baler_common::transport::guarded;

use super::{Link, Worker};
use crate::direct::Direct;

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
