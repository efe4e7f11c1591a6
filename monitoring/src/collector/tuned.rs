//! What the collector's own choice of chunk size, wait time and tick goes by, and what it changes.

use std::time::Duration;

use super::thread::Collector;
use super::tuning::{Choice, Tuner, Tuning};
use crate::clock::monotonic;

/// A tuner, and what is set about the bytes of chunks.
pub(super) struct Tuned {
    pub(super) tuner: Tuner,
    chunk_bytes: usize,
}

impl Tuned {
    pub(super) fn new(tuning: Tuning) -> Self {
        Self {
            tuner: Tuner::new(tuning, monotonic()),
            chunk_bytes: tuning.chunk_bytes,
        }
    }

    pub(super) fn choice(&self) -> Choice {
        self.tuner.choice()
    }

    /// How long after the round before began to look again.
    pub(super) fn look(&self) -> Duration {
        self.tuner.choice().look
    }
}

impl Collector {
    /// Chooses anew after a look into the queues.
    pub(super) fn tune(&mut self) {
        let taken = self.taken();
        let Some(tuned) = &mut self.tuned else {
            return;
        };
        let is_news = tuned.tuner.looked(taken, monotonic());
        let choice = tuned.choice();
        self.rule.records = choice.records;
        self.rule.wait = choice.wait;
        // A chunk that the medium finds too large is made twice.
        self.rule.bytes = tuned.chunk_bytes.min(self.dispatch.limit() / 8 * 7).max(1);
        if is_news {
            self.shared.ledger.chosen(choice.expected, choice.wait);
        }
    }
}
