//! Chunks that leave the disk, delivered or put aside.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{
    Delivery, Poison, Quarantine as _, RetryClass, TransportError, Verdict,
};

use super::Worker;
use crate::REFUSED_FOLDER;
use crate::watch::{SpoolStatus, add, take};

impl Worker {
    /// A chunk that is not on disk any more.
    pub(super) fn count_gone(
        &self,
        delivery: &Delivery,
        change: impl FnOnce(&mut SpoolStatus, u64),
    ) {
        let records = delivery.meta.map_or(0, |meta| u64::from(meta.records));
        self.shared.watch.update(|status| {
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
        });
        match kept {
            Ok(()) => {
                self.store.settle(delivery.token, Verdict::Reject);
                self.count_gone(&delivery, |status, records| {
                    add(&mut status.refused_chunks, 1);
                    add(&mut status.refused_records, records);
                });
            }
            Err(error) => {
                // It stays where it is; sooner or later there is room for it.
                self.note_disk(Some(error));
                let pause = self.pause();
                self.give_back(&delivery, pause, now);
            }
        }
    }

    pub(super) fn note_disk(&self, error: Option<std::io::Error>) {
        if let Some(error) = error {
            let folder = self.config.folder.join(REFUSED_FOLDER);
            let error = TransportError::caused_by(
                "write to",
                folder.display().to_string(),
                RetryClass::Retry,
                error,
            );
            let error = Arc::new(error);
            self.shared.watch.update(|status| {
                add(&mut status.disk_failures, 1);
                status.disk_error = Some(error);
            });
        }
    }
}
