//! The collector's accounts, shared with those who ask.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::container::{LossReason, Losses};
use baler_common::transport::OutboxStats;

use super::closing::ClosedBy;
use super::stats::{ShutdownReport, Stats};
use crate::clock::monotonic;
use crate::queue::QueueSet;

/// What the collector has done. It is written once a chunk, never once a record.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    accounts: Mutex<Accounts>,
    finished: Condvar,
}

#[derive(Debug, Default)]
struct Accounts {
    /// What the collector has done. The queues add their own figures when somebody asks.
    stats: Stats,
    /// The final report, once there is one.
    report: Option<ShutdownReport>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the accounts. What is entered after the report was made concerns nobody any more.
    fn enter(&self, entry: impl FnOnce(&mut Stats)) {
        entry(&mut self.lock().stats);
    }

    pub(super) fn delivered(&self, records: u32, bytes: usize) {
        self.enter(|stats| {
            add(&mut stats.delivered, u64::from(records));
            add(&mut stats.chunks_delivered, 1);
            add_bytes(&mut stats.bytes_delivered, bytes);
        });
    }

    pub(super) fn spooled(&self, records: u32) {
        self.enter(|stats| {
            add(&mut stats.spooled, u64::from(records));
            add(&mut stats.chunks_spooled, 1);
        });
    }

    /// A chunk does not reach the medium, or its records go there in other chunks.
    pub(super) fn given_up(&self) {
        self.enter(|stats| add(&mut stats.chunks_given_up, 1));
    }

    pub(super) fn lost(&self, reason: LossReason, records: u64) {
        self.enter(|stats| stats.dropped.add(reason, records));
    }

    pub(super) fn encoded(&self, bytes: usize, closed_by: ClosedBy) {
        self.enter(|stats| {
            stats.closed_by.count(closed_by);
            add(&mut stats.chunks_encoded, 1);
            add_bytes(&mut stats.encoded_bytes, bytes);
        });
    }

    pub(super) fn closed(&self, row_bytes: usize) {
        self.enter(|stats| add_bytes(&mut stats.row_bytes, row_bytes));
    }

    pub(super) fn split(&self) {
        self.enter(|stats| add(&mut stats.splits, 1));
    }

    pub(super) fn quarantined(&self, records: u64) {
        self.enter(|stats| add(&mut stats.quarantined, records));
    }

    pub(super) fn panicked(&self) {
        self.enter(|stats| add(&mut stats.panics, 1));
    }

    /// From now on chunks close at this number of records, or when the oldest has waited for `wait_time`.
    pub(super) fn chosen(&self, chunk_records: usize, wait_time: Duration) {
        self.enter(|stats| {
            stats.chunk_records = u64::try_from(chunk_records).unwrap_or(u64::MAX);
            stats.wait_time = wait_time;
        });
    }

    pub(super) fn outbox(&self, outbox: OutboxStats) {
        self.enter(|stats| stats.outbox = outbox);
    }

    /// Records lost since the collector had them.
    pub(super) fn losses(&self) -> Losses {
        self.lock().stats.dropped.clone()
    }

    /// All figures of now.
    pub(crate) fn stats(&self, queues: &QueueSet) -> Stats {
        let accounts = self.lock();
        match &accounts.report {
            Some(report) => report.stats.clone(),
            None => with_queues(&accounts.stats, queues),
        }
    }

    /// The final report, if there is one.
    pub(crate) fn report(&self) -> Option<ShutdownReport> {
        self.lock().report.clone()
    }

    /// Makes the accounts final: records without a fate count as undelivered, chunks as given up.
    ///
    /// The queues must be closed. The first call makes the report, all get it.
    pub(crate) fn finish(
        &self,
        queues: &QueueSet,
        on_time: bool,
        error: Option<Box<str>>,
    ) -> ShutdownReport {
        let mut accounts = self.lock();
        if let Some(report) = &accounts.report {
            return report.clone();
        }
        let mut stats = with_queues(&accounts.stats, queues);
        let known = stats
            .delivered
            .saturating_add(stats.spooled)
            .saturating_add(stats.dropped.total());
        let rest = stats.emitted.saturating_sub(known);
        stats.dropped.add(LossReason::Undelivered, rest);
        stats.queued = 0;
        let known = stats
            .chunks_delivered
            .saturating_add(stats.chunks_spooled)
            .saturating_add(stats.chunks_given_up);
        let rest = stats.chunks_encoded.saturating_sub(known);
        add(&mut stats.chunks_given_up, rest);
        let report = ShutdownReport {
            on_time,
            error,
            stats,
        };
        accounts.report = Some(report.clone());
        drop(accounts);
        self.finished.notify_all();
        report
    }

    /// Waits for the final report until `by` at most.
    pub(crate) fn wait(&self, by: Instant) -> Option<ShutdownReport> {
        let accounts = self.lock();
        let left = by.saturating_duration_since(monotonic());
        let (accounts, _) = self
            .finished
            .wait_timeout_while(accounts, left, |accounts| accounts.report.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        accounts.report.clone()
    }
}

/// These figures with those of the queues.
fn with_queues(stats: &Stats, queues: &QueueSet) -> Stats {
    let counts = queues.counts();
    let mut stats = stats.clone();
    stats.emitted = counts.emitted;
    stats.queued = counts.queued;
    stats.queue_bytes = queues.bytes();
    for (code, records) in counts.lost.iter() {
        stats.dropped.add_code(code, records);
    }
    stats
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

fn add_bytes(sum: &mut u64, bytes: usize) {
    add(sum, count(bytes));
}

/// A number of records or bytes, as it is counted.
pub(super) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
