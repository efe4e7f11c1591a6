//! The collector's accounts, shared with callers of the controller.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baler_common::container::{LossReason, Losses};
use baler_common::mutex::lock;
use baler_common::number::to_u64;
use baler_common::transport::OutboxStats;

use super::closing::ClosedBy;
use super::stats::{ShutdownReport, Stats};
use crate::clock::time_left;
use crate::queue::QueueSet;

/// The collector's accounts. They are written once a chunk, never once a record.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    accounts: Mutex<Accounts>,
    finished: Condvar,
}

#[derive(Debug, Default)]
struct Accounts {
    /// The collector's figures. The queues add theirs when a caller reads them.
    stats: Stats,
    /// The final report, once there is one.
    report: Option<ShutdownReport>,
}

impl Ledger {
    /// Changes the accounts. Entries after the final report are ignored.
    fn enter(&self, entry: impl FnOnce(&mut Stats)) {
        entry(&mut lock(&self.accounts).stats);
    }

    pub(super) fn delivered(&self, records: u32, bytes: usize) {
        self.enter(|stats| {
            stats.delivered += u64::from(records);
            stats.chunks_delivered += 1;
            stats.bytes_delivered += to_u64(bytes);
        });
    }

    pub(super) fn spooled(&self, records: u32) {
        self.enter(|stats| {
            stats.spooled += u64::from(records);
            stats.chunks_spooled += 1;
        });
    }

    /// Counts a chunk that does not reach the medium, or whose records go there in other chunks.
    pub(super) fn given_up(&self) {
        self.enter(|stats| stats.chunks_given_up += 1);
    }

    pub(super) fn lost(&self, reason: LossReason, records: u64) {
        self.enter(|stats| stats.dropped.add(reason, records));
    }

    pub(super) fn encoded(&self, bytes: usize, closed_by: ClosedBy) {
        self.enter(|stats| {
            stats.closed_by.count(closed_by);
            stats.chunks_encoded += 1;
            stats.encoded_bytes += to_u64(bytes);
        });
    }

    pub(super) fn closed(&self, row_bytes: usize) {
        self.enter(|stats| stats.row_bytes += to_u64(row_bytes));
    }

    pub(super) fn split(&self) {
        self.enter(|stats| stats.splits += 1);
    }

    pub(super) fn quarantined(&self, records: u64) {
        self.enter(|stats| stats.quarantined += records);
    }

    pub(super) fn panicked(&self) {
        self.enter(|stats| stats.panics += 1);
    }

    /// Records the chosen size and wait time: chunks close at this number of records, or when the
    /// oldest record has waited for `wait_time`.
    pub(super) fn chosen(&self, chunk_records: usize, wait_time: Duration) {
        self.enter(|stats| {
            stats.chunk_records = to_u64(chunk_records);
            stats.wait_time = wait_time;
        });
    }

    pub(super) fn outbox(&self, outbox: OutboxStats) {
        self.enter(|stats| stats.outbox = outbox);
    }

    /// Records lost after they reached the collector.
    pub(super) fn losses(&self) -> Losses {
        lock(&self.accounts).stats.dropped.clone()
    }

    /// Returns all current figures.
    pub(crate) fn stats(&self, queues: &QueueSet) -> Stats {
        let accounts = lock(&self.accounts);
        match &accounts.report {
            Some(report) => report.stats.clone(),
            None => with_queues(&accounts.stats, queues),
        }
    }

    /// The final report, if there is one.
    pub(crate) fn report(&self) -> Option<ShutdownReport> {
        lock(&self.accounts).report.clone()
    }

    /// Makes the accounts final: records without a fate count as undelivered, chunks as given up.
    ///
    /// The queues must be closed. The first call makes the report; later calls return the same one.
    pub(crate) fn finish(
        &self,
        queues: &QueueSet,
        on_time: bool,
        error: Option<Box<str>>,
    ) -> ShutdownReport {
        let mut accounts = lock(&self.accounts);
        if let Some(report) = &accounts.report {
            return report.clone();
        }
        let mut stats = with_queues(&accounts.stats, queues);
        let known = stats.delivered + stats.spooled + stats.dropped.total();
        let rest = stats.emitted.saturating_sub(known);
        stats.dropped.add(LossReason::Undelivered, rest);
        stats.queued = 0;
        // Each chunk was counted as encoded before it got its fate.
        let kept = stats.chunks_delivered + stats.chunks_spooled;
        stats.chunks_given_up = stats.chunks_encoded - kept;
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
        let accounts = lock(&self.accounts);
        let (accounts, _) = self
            .finished
            .wait_timeout_while(accounts, time_left(by), |it| it.report.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        accounts.report.clone()
    }
}

/// Returns these figures together with the queues' figures.
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
