//! The collector's accounts, shared with those who ask.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::container::{LossReason, Losses};
use baler_common::transport::OutboxStats;

use super::batch::ClosedBy;
use super::stats::{ClosedByCounts, ShutdownReport, Stats};
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
    delivered: u64,
    spooled: u64,
    chunks_delivered: u64,
    chunks_spooled: u64,
    chunks_given_up: u64,
    bytes_delivered: u64,
    lost: Losses,
    chunks_encoded: u64,
    row_bytes: u64,
    encoded_bytes: u64,
    closed_by: ClosedByCounts,
    splits: u64,
    quarantined: u64,
    panics: u64,
    chunk_records: u64,
    wait_time: Duration,
    outbox: OutboxStats,
    /// From then on all that anyone is told.
    report: Option<ShutdownReport>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the accounts. What is entered after the report was made concerns nobody any more.
    fn enter(&self, entry: impl FnOnce(&mut Accounts)) {
        entry(&mut self.lock());
    }

    pub(super) fn delivered(&self, records: u32, bytes: usize) {
        self.enter(|accounts| {
            add(&mut accounts.delivered, u64::from(records));
            add(&mut accounts.chunks_delivered, 1);
            add_bytes(&mut accounts.bytes_delivered, bytes);
        });
    }

    pub(super) fn spooled(&self, records: u32) {
        self.enter(|accounts| {
            add(&mut accounts.spooled, u64::from(records));
            add(&mut accounts.chunks_spooled, 1);
        });
    }

    /// A chunk does not reach the medium, or its records go there in other chunks.
    pub(super) fn given_up(&self) {
        self.enter(|accounts| add(&mut accounts.chunks_given_up, 1));
    }

    pub(super) fn lost(&self, reason: LossReason, records: u64) {
        self.enter(|accounts| accounts.lost.add(reason, records));
    }

    pub(super) fn encoded(&self, bytes: usize, closed_by: ClosedBy) {
        self.enter(|accounts| {
            accounts.closed_by.count(closed_by);
            add(&mut accounts.chunks_encoded, 1);
            add_bytes(&mut accounts.encoded_bytes, bytes);
        });
    }

    pub(super) fn closed(&self, row_bytes: usize) {
        self.enter(|accounts| add_bytes(&mut accounts.row_bytes, row_bytes));
    }

    pub(super) fn split(&self) {
        self.enter(|accounts| add(&mut accounts.splits, 1));
    }

    pub(super) fn quarantined(&self, records: u64) {
        self.enter(|accounts| add(&mut accounts.quarantined, records));
    }

    pub(super) fn panicked(&self) {
        self.enter(|accounts| add(&mut accounts.panics, 1));
    }

    /// From now on chunks are to have so many records, and close when the oldest has waited so long.
    pub(super) fn chosen(&self, chunk_records: usize, wait_time: Duration) {
        self.enter(|accounts| {
            accounts.chunk_records = u64::try_from(chunk_records).unwrap_or(u64::MAX);
            accounts.wait_time = wait_time;
        });
    }

    pub(super) fn outbox(&self, stats: OutboxStats) {
        self.enter(|accounts| accounts.outbox = stats);
    }

    /// Records lost since the collector had them.
    pub(super) fn losses(&self) -> Losses {
        self.lock().lost.clone()
    }

    /// All figures of now.
    pub(crate) fn stats(&self, queues: &QueueSet) -> Stats {
        let accounts = self.lock();
        match &accounts.report {
            Some(report) => report.stats.clone(),
            None => accounts.stats(queues),
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
        let mut stats = accounts.stats(queues);
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

impl Accounts {
    fn stats(&self, queues: &QueueSet) -> Stats {
        let counts = queues.counts();
        let mut dropped = self.lost.clone();
        for (code, records) in counts.lost.iter() {
            dropped.add_code(code, records);
        }
        Stats {
            emitted: counts.emitted,
            delivered: self.delivered,
            spooled: self.spooled,
            dropped,
            queued: counts.queued,
            queue_bytes: queues.bytes(),
            chunks_delivered: self.chunks_delivered,
            chunks_spooled: self.chunks_spooled,
            chunks_given_up: self.chunks_given_up,
            bytes_delivered: self.bytes_delivered,
            chunks_encoded: self.chunks_encoded,
            row_bytes: self.row_bytes,
            encoded_bytes: self.encoded_bytes,
            closed_by: self.closed_by,
            splits: self.splits,
            quarantined: self.quarantined,
            panics: self.panics,
            chunk_records: self.chunk_records,
            wait_time: self.wait_time,
            outbox: self.outbox.clone(),
        }
    }
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

fn add_bytes(count: &mut u64, bytes: usize) {
    add(count, u64::try_from(bytes).unwrap_or(u64::MAX));
}
