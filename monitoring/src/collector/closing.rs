//! The rule that says when a chunk is closed. It has no thread and no clock.

use std::time::{Duration, Instant};

/// Why a chunk was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClosedBy {
    /// The oldest record of the chunk had waited long enough.
    Age,
    /// The chunk would soon have reached its size limit when encoded.
    Bytes,
    /// A flush or the shutdown closed the chunk.
    Flush,
    /// The chunk had enough records.
    Records,
}

impl ClosedBy {
    /// All reasons, in the order of their names.
    pub const ALL: [Self; 4] = [Self::Age, Self::Bytes, Self::Flush, Self::Records];

    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Bytes => "bytes",
            Self::Flush => "flush",
            Self::Records => "records",
        }
    }
}

/// When a chunk is closed: "enough records to fill a chunk or \[they\] have exceeded a given wait
/// time" (Knoche, section 3). Baler also limits its bytes.
#[derive(Debug, Clone)]
pub(super) struct ClosingRule {
    pub(super) records: usize,
    /// The limit of encoded bytes.
    pub(super) bytes: usize,
    pub(super) wait: Duration,
    /// Bytes of rows for each encoded byte, times 1,024; learned from earlier chunks. The rule can
    /// only measure rows, but its limit is in encoded bytes.
    compression_ratio: usize,
    max_compression_ratio: usize,
    learned: bool,
}

/// The lowest and the highest compression ratio that the rule learns, times 1,024. The highest one
/// limits a batch of well compressible rows to that many times its encoded bytes.
const COMPRESSION_RATIOS: (usize, usize) = (512, 16 << 10);

impl ClosingRule {
    pub(super) fn new(records: usize, bytes: usize, wait: Duration) -> Self {
        Self {
            records,
            bytes,
            wait,
            compression_ratio: 1_024,
            max_compression_ratio: COMPRESSION_RATIOS.1,
            learned: false,
        }
    }

    /// Closes batches at twice their limit of bytes, measured as rows. For controllers with a
    /// memory budget.
    pub(super) fn within_budget(mut self) -> Self {
        self.max_compression_ratio = 2 << 10;
        self
    }

    /// Returns why a batch with these records and bytes of rows is a full chunk, if it is one.
    pub(super) fn full(&self, records: usize, row_bytes: usize) -> Option<ClosedBy> {
        if records >= self.records {
            Some(ClosedBy::Records)
        } else if records > 0 && row_bytes >= self.full_row_bytes() {
            Some(ClosedBy::Bytes)
        } else {
            None
        }
    }

    /// The records, and the bytes of rows, that a batch takes before it is a full chunk; at least
    /// one of each.
    pub(super) fn left(&self, records: usize, row_bytes: usize) -> (usize, usize) {
        (
            self.records.saturating_sub(records).max(1),
            self.full_row_bytes().saturating_sub(row_bytes).max(1),
        )
    }

    /// Returns the bytes of rows at which a batch is a full chunk.
    fn full_row_bytes(&self) -> usize {
        self.bytes.saturating_mul(self.compression_ratio) / 1_024
    }

    /// Returns when to close a batch whose oldest record was emitted no earlier than `oldest`.
    pub(super) fn closes_at(&self, oldest: Instant) -> Option<Instant> {
        oldest.checked_add(self.wait)
    }

    /// Learns that a batch with `row_bytes` bytes of rows became a chunk of `encoded_bytes` bytes.
    pub(super) fn learn(&mut self, row_bytes: usize, encoded_bytes: usize) {
        let (least, most) = (COMPRESSION_RATIOS.0, self.max_compression_ratio);
        let found = row_bytes.saturating_mul(1_024) / encoded_bytes.max(1);
        let found = found.clamp(least, most);
        // After that, move a quarter of the way to each new value: one odd chunk has little effect.
        self.compression_ratio = if self.learned {
            (self.compression_ratio * 3 + found) / 4
        } else {
            found
        };
        self.learned = true;
    }

    /// Returns when to poll again if a chunk will be full after `full`, and polling pays after
    /// `worthwhile`.
    ///
    /// One poll may make several small chunks. A full chunk waits for other chunks for at most an
    /// eighth of the wait time.
    pub(super) fn poll_interval(&self, full: Duration, worthwhile: Duration) -> Duration {
        let tick = self.tick();
        let soonest = (tick / 8).max(LEAST_TICK);
        // Poll at least this often, to notice a rising rate.
        full.max(worthwhile.min(tick))
            .max(soonest)
            .min(self.longest_tick())
    }

    /// Returns how often to poll the queues so that the wait time is kept.
    pub(super) fn tick(&self) -> Duration {
        (self.wait / 8)
            .min(Duration::from_millis(100))
            .max(LEAST_TICK)
    }

    /// With this time between two polls at most, no record waits longer than the wait time.
    pub(super) fn longest_tick(&self) -> Duration {
        (self.wait / 2)
            .min(Duration::from_millis(500))
            .max(LEAST_TICK)
    }
}

/// The shortest time between two polls, however short the wait time is.
const LEAST_TICK: Duration = Duration::from_millis(1);

/// A poll should find at least this number of records, unless that takes too long. A poll wakes the
/// collector and the sender, both with cold caches. That costs as much CPU time as emitting and
/// encoding more than a thousand records. A study of `baler sweep` (benches/results) finds about
/// 370 us a poll and 210 ns a record.
pub(super) const MIN_POLL_RECORDS: f64 = 1_024.0;

/// The collector polls later than a chunk should be full, by this part of its records. Records come
/// in bursts, and a poll before the last record of a chunk is wasted.
pub(super) const BURST_MARGIN: usize = 16;

#[cfg(test)]
mod tests;
