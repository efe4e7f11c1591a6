//! When a chunk is closed: a rule without a thread or a clock.

use std::time::{Duration, Instant};

/// Why a chunk was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClosedBy {
    /// Its oldest record had waited long enough.
    Age,
    /// It was about to be large enough when encoded.
    Bytes,
    /// A flush or the shutdown asked for it.
    Flush,
    /// It had enough records.
    Records,
}

impl ClosedBy {
    /// All of them, in the order of their names.
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

/// When a chunk is closed ("enough records to fill a chunk or \[they\] have exceeded a given wait
/// time": Knoche, section 3), and its bytes besides.
#[derive(Debug, Clone)]
pub(super) struct ClosingRule {
    pub(super) records: usize,
    /// Encoded bytes.
    pub(super) bytes: usize,
    pub(super) wait: Duration,
    /// How many bytes of rows become one encoded byte, times 1,024; learned from the chunks before.
    /// Rows are measured, but encoded bytes count.
    compression_ratio: usize,
    max_compression_ratio: usize,
    learned: bool,
}

/// The least and the highest compression ratio that is learned, times 1,024. However well a chunk
/// packs, its batch stays within that many times its bytes.
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

    /// Closes batches at twice their bytes as rows, however well they pack: for who has a budget.
    pub(super) fn within_budget(mut self) -> Self {
        self.max_compression_ratio = 2 << 10;
        self
    }

    /// Whether a batch with this number of records and bytes of rows is a chunk.
    pub(super) fn full(&self, records: usize, row_bytes: usize) -> Option<ClosedBy> {
        if records >= self.records {
            Some(ClosedBy::Records)
        } else if records > 0
            && row_bytes >= self.bytes.saturating_mul(self.compression_ratio) / 1_024
        {
            Some(ClosedBy::Bytes)
        } else {
            None
        }
    }

    /// How many more records, and bytes of rows, a batch takes before it is a chunk; at least one of
    /// each.
    pub(super) fn left(&self, records: usize, row_bytes: usize) -> (usize, usize) {
        let bytes = self.bytes.saturating_mul(self.compression_ratio) / 1_024;
        (
            self.records.saturating_sub(records).max(1),
            bytes.saturating_sub(row_bytes).max(1),
        )
    }

    /// When a batch whose oldest record was emitted at this time at the earliest must be closed.
    pub(super) fn closes_at(&self, oldest: Instant) -> Option<Instant> {
        oldest.checked_add(self.wait)
    }

    /// Learns how large a batch became that had `row_bytes` bytes of rows.
    pub(super) fn learn(&mut self, row_bytes: usize, encoded_bytes: usize) {
        let (least, most) = (COMPRESSION_RATIOS.0, self.max_compression_ratio);
        let found = row_bytes.saturating_mul(1_024) / encoded_bytes.max(1);
        let found = found.clamp(least, most);
        // Later a quarter of the way to each new value: one odd chunk does not mislead the next.
        self.compression_ratio = if self.learned {
            self.compression_ratio
                .saturating_mul(3)
                .saturating_add(found)
                / 4
        } else {
            found
        };
        self.learned = true;
    }

    /// How soon to poll again where a chunk should be full after so long, and polling pays after
    /// `worthwhile`.
    ///
    /// Several small chunks are made in one go, but none that is full waits for others for longer
    /// than an eighth of the wait time.
    pub(super) fn poll_interval(&self, full: Duration, worthwhile: Duration) -> Duration {
        let tick = self.tick();
        let soonest = (tick / 8).max(LEAST_TICK);
        // At the latest: a rate that rises is to be noticed.
        full.max(worthwhile.min(tick))
            .max(soonest)
            .min(self.longest_tick())
    }

    /// How often to poll the queues so that the wait time is kept.
    pub(super) fn tick(&self) -> Duration {
        (self.wait / 8)
            .min(Duration::from_millis(100))
            .max(LEAST_TICK)
    }

    /// No record waits for longer than its wait time if two polls are not further apart than this.
    pub(super) fn longest_tick(&self) -> Duration {
        (self.wait / 2)
            .min(Duration::from_millis(500))
            .max(LEAST_TICK)
    }
}

/// The shortest time between two polls, however short the wait time is.
const LEAST_TICK: Duration = Duration::from_millis(1);

/// A poll is made for at least this number of records, unless that takes too long: waking the collector and
/// whatever sends, all with cold caches, takes as much CPU time as emitting and encoding a thousand
/// and more of them (a study of `baler sweep`, benches/results, finds some 370 us a poll and 210 ns a record).
pub(super) const MIN_POLL_RECORDS: f64 = 1_024.0;

/// A chunk is polled for later than it should be full, by this part of its records: they come in bursts,
/// and a poll before the last record of a chunk is made for nothing.
pub(super) const BURST_MARGIN: usize = 16;

#[cfg(test)]
mod tests;
