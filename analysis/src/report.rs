//! The figures of a source.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use baler_common::container::Losses;
use baler_common::mutex::lock;
use baler_common::transport::{ChunkIdentity, ReaderStats, Readership, Waiting};
use baler_connector_file::quarantine::NotKept;

use crate::lanes::Gap;

/// The figures of a source.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SourceReport {
    /// Chunks decoded and passed on.
    pub chunks: u64,
    /// The number of their records.
    pub records: u64,
    /// The bytes of these chunks as received.
    pub bytes: u64,
    /// Chunks without a record in the wanted time
    /// ([`Source::with_time_span`](crate::Source::with_time_span)). They were not decoded.
    pub outside_time: u64,
    /// Chunks settled as processed.
    pub acknowledged: u64,
    /// Chunks given back because a stage failed, or did not end in time.
    pub given_back: u64,
    /// Chunks in quarantine, and bytes that should have been a chunk.
    pub quarantined: u64,
    /// Those in [`SourceReport::quarantined`] of which only a count is left, by reason. The medium's
    /// own count ([`ReaderStats::unreported`]) is not among them.
    pub not_kept: BTreeMap<NotKept, u64>,
    /// Chunks in [`SourceReport::quarantined`] with the identity of another chunk that was
    /// processed before.
    pub conflicts: u64,
    /// Deliveries that the medium marked as repeated.
    pub redelivered: u64,
    /// Copies of chunks that this reader had settled before; not processed again.
    pub duplicates: u64,
    /// Copies of chunks that another reader of the group had settled. Copies that came after that
    /// are not processed again. Copies that were in work at two readers at the same time are.
    pub duplicates_across_readers: u64,
    /// Copies in [`SourceReport::duplicates_across_readers`] that were processed.
    pub processed_twice: u64,
    /// Chunks that came too late to know whether they had been settled. They were processed.
    pub unverifiable: u64,
    /// Settlements that came too late: the delivery had gone to another reader.
    pub stale: u64,
    /// Failures of the medium from which the reader recovers by itself.
    pub transport_errors: u64,
    /// Lanes seen.
    pub lanes: usize,
    /// Lanes that have ended: their producer's last chunk was seen.
    pub complete_lanes: usize,
    /// Chunks that never came, lane by lane.
    pub gaps: Vec<Gap>,
    /// The first chunk of each lane that starts in the middle; see
    /// [`LaneTracker::starts`](crate::lanes::LaneTracker::starts).
    pub starts: Vec<ChunkIdentity>,
    /// Records that producers lost before they were sent, by reason.
    pub producer_losses: Losses,
    /// Whether the reader has reached the end of its medium; `None` if the medium has no end.
    pub reached_end: Option<bool>,
    /// Chunks in work: received and not settled.
    pub in_work: usize,
    /// The number of the medium's lanes that the reader owns; `None` if the medium assigns none.
    pub assigned: Option<usize>,
    /// The reader's figures of its medium: lag, rebalances, reconnects.
    pub reader: ReaderStats,
    /// Since when nothing has arrived although the reader is not at the end of its medium. While
    /// the most allowed chunks are in work, the source waits for its stages and not for the medium.
    pub waiting: Waiting,
}

impl SourceReport {
    /// Returns the number of missing chunks: no producer gave them up, no other process can have
    /// them, and they do not come again.
    pub fn missing(&self, readership: Readership) -> u64 {
        let is_exact = readership == Readership::OneProcess;
        let gaps = self.gaps.iter().filter(|gap| is_exact && !gap.explained);
        // A sender can leave gaps of any size.
        let missing = gaps.fold(0, |sum: u64, gap| sum.saturating_add(gap.chunks));
        missing.saturating_sub(self.given_back)
    }

    /// Returns, by reason, how many poison messages left only a count.
    pub fn not_kept(&self) -> BTreeMap<NotKept, u64> {
        let mut counts = self.not_kept.clone();
        if self.reader.unreported > 0 {
            counts.insert(NotKept::Unreported, self.reader.unreported);
        }
        counts
    }

    /// Adds another reader's counters. Lanes, gaps, starts and losses are not added, because they overlap.
    pub(crate) fn add(&mut self, other: &Self) {
        let counters = [
            (&mut self.chunks, other.chunks),
            (&mut self.records, other.records),
            (&mut self.bytes, other.bytes),
            (&mut self.outside_time, other.outside_time),
            (&mut self.acknowledged, other.acknowledged),
            (&mut self.given_back, other.given_back),
            (&mut self.quarantined, other.quarantined),
            (&mut self.conflicts, other.conflicts),
            (&mut self.redelivered, other.redelivered),
            (&mut self.duplicates, other.duplicates),
            (
                &mut self.duplicates_across_readers,
                other.duplicates_across_readers,
            ),
            (&mut self.processed_twice, other.processed_twice),
            (&mut self.unverifiable, other.unverifiable),
            (&mut self.stale, other.stale),
            (&mut self.transport_errors, other.transport_errors),
            (&mut self.reader.rebalances, other.reader.rebalances),
            (&mut self.reader.reconnects, other.reader.reconnects),
            (&mut self.reader.unreported, other.reader.unreported),
            (&mut self.reader.removals, other.reader.removals),
            (&mut self.reader.removed, other.reader.removed),
        ];
        for (sum, more) in counters {
            // A medium may report any number of removed chunks.
            *sum = sum.saturating_add(more);
        }
        for (why, more) in &other.not_kept {
            *self.not_kept.entry(*why).or_default() += more;
        }
        self.reader.throttled += other.reader.throttled;
        self.in_work += other.in_work;
        self.reached_end = match (self.reached_end, other.reached_end) {
            (Some(one), Some(another)) => Some(one && another),
            (one, another) => one.or(another),
        };
        for (name, count) in &other.reader.counts {
            let counts = &mut self.reader.counts;
            match counts.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += count,
                None => counts.push((name, *count)),
            }
        }
    }

    /// Adds the medium's lanes that another reader owns, and its lag. Competing readers of one
    /// queue report the same chunks, so the largest lag of each lane counts.
    pub(crate) fn add_owned(&mut self, other: &Self) {
        if let Some(assigned) = other.assigned {
            *self.assigned.get_or_insert_default() += assigned;
        }
        for lane in &other.reader.lag {
            let known = self.reader.lag.iter_mut().find(|it| it.lane == lane.lane);
            match known {
                Some(known) => known.chunks = known.chunks.max(lane.chunks),
                None => self.reader.lag.push(lane.clone()),
            }
        }
    }
}

/// A view of a source's figures; see [`Source::watch`](crate::Source::watch).
///
/// Clones share it. Any thread may read it, even after the source is gone.
#[derive(Debug, Clone, Default)]
pub struct SourceWatch {
    report: Arc<Mutex<SourceReport>>,
}

impl SourceWatch {
    /// Returns the figures that the source published last. They are at most a quarter of a second
    /// old, unless a stage delays the source.
    pub fn report(&self) -> SourceReport {
        lock(&self.report).clone()
    }

    pub(crate) fn show(&self, report: SourceReport) {
        *lock(&self.report) = report;
    }

    /// Whether a clone of this view exists outside the source.
    pub(crate) fn is_watched(&self) -> bool {
        Arc::strong_count(&self.report) > 1
    }
}
