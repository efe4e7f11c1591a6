//! What the collector's own choice of chunk size, wait time and tick goes by, and what it changes.

use std::time::{Duration, Instant};

use super::thread::Collector;
use super::tuning::{Choice, Tuner, Tuning};
use crate::clock::monotonic;

/// A tuner, and the observations for it.
pub(super) struct Tuned {
    tuner: Tuner,
    /// The chunk whose fate is waited for, and when it was due.
    sample: Option<(u64, Instant)>,
    /// What is set about the bytes of chunks.
    chunk_bytes: usize,
}

/// A chunk that was just made.
pub(super) struct NewChunk {
    pub(super) records: usize,
    pub(super) row_bytes: usize,
    pub(super) bytes: usize,
    /// When its oldest record was emitted at the earliest.
    pub(super) oldest: Option<Instant>,
    pub(super) ticket: u64,
}

impl Tuned {
    pub(super) fn new(tuning: Tuning, now: Instant) -> Self {
        Self {
            tuner: Tuner::new(tuning, now),
            sample: None,
            chunk_bytes: tuning.chunk_bytes,
        }
    }

    pub(super) fn choice(&self) -> Choice {
        self.tuner.choice()
    }

    /// Whether a chunk's fate is waited for.
    pub(super) fn has_sample(&self) -> bool {
        self.sample.is_some()
    }

    /// How long after the round before began to look again.
    pub(super) fn look(&self) -> Duration {
        self.tuner.choice().look
    }

    pub(super) fn made(&mut self, chunk: &NewChunk) {
        self.tuner
            .encoded(chunk.records, chunk.row_bytes, chunk.bytes);
        let now = monotonic();
        let wait = self.tuner.choice().wait;
        let due = chunk.oldest.and_then(|oldest| oldest.checked_add(wait));
        let due = due.map_or(now, |due| due.min(now));
        self.tuner.made(now.saturating_duration_since(due), now);
        // One fate is waited for at a time.
        if self.sample.is_none() && self.tuner.begin_sample(now) {
            self.sample = Some((chunk.ticket, due));
        }
    }
}

impl Collector {
    /// Chooses anew after a look into the queues.
    pub(super) fn tune(&mut self) {
        let taken = self.taken();
        let Some(tuned) = &mut self.tuned else {
            return;
        };
        let now = monotonic();
        if let Some((ticket, due)) = tuned.sample {
            if self.dispatch.has_settled(ticket.saturating_add(1)) {
                tuned.sample = None;
                let late = now.saturating_duration_since(due);
                tuned.tuner.settled(late, now);
            }
        }
        let is_news = tuned.tuner.looked(taken, now);
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
