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
    /// How many bytes of rows become 1,024 encoded bytes, learned from the chunks before: rows are
    /// measured, but what is sent counts.
    rows_of_1024: usize,
    most_rows_of_1024: usize,
    learned: bool,
}

/// Rows are at least as large as their encoding, and so much larger at most: however well a chunk
/// packs, its batch stays within this many times its bytes.
const ROWS_OF_1024: (usize, usize) = (512, 16 << 10);

impl ClosingRule {
    pub(super) fn new(records: usize, bytes: usize, wait: Duration) -> Self {
        Self {
            records,
            bytes,
            wait,
            rows_of_1024: 1_024,
            most_rows_of_1024: ROWS_OF_1024.1,
            learned: false,
        }
    }

    /// Closes batches at twice their bytes as rows, however well they pack: for who has a budget.
    pub(super) fn within_budget(mut self) -> Self {
        self.most_rows_of_1024 = 2 << 10;
        self
    }

    /// Whether a batch of so many records and bytes of rows is a chunk.
    pub(super) fn full(&self, records: usize, row_bytes: usize) -> Option<ClosedBy> {
        if records >= self.records {
            Some(ClosedBy::Records)
        } else if records > 0 && row_bytes >= self.bytes.saturating_mul(self.rows_of_1024) / 1_024 {
            Some(ClosedBy::Bytes)
        } else {
            None
        }
    }

    /// How many records of so many bytes a batch of so many records and bytes of rows takes before it
    /// is a chunk; at least one.
    #[cfg(feature = "enable")]
    pub(super) fn room(&self, records: usize, row_bytes: usize, record_bytes: usize) -> usize {
        let (records, bytes) = self.left(records, row_bytes);
        records.min(bytes.div_ceil(record_bytes.max(1)))
    }

    /// How many records, and bytes of rows, such a batch takes before it is a chunk; at least one.
    pub(super) fn left(&self, records: usize, row_bytes: usize) -> (usize, usize) {
        let bytes = self.bytes.saturating_mul(self.rows_of_1024) / 1_024;
        (
            self.records.saturating_sub(records).max(1),
            bytes.saturating_sub(row_bytes).max(1),
        )
    }

    /// When a batch whose oldest record was emitted at this time at the earliest must be closed.
    pub(super) fn closes_at(&self, oldest: Instant) -> Option<Instant> {
        oldest.checked_add(self.wait)
    }

    /// Learns how large a batch of so many bytes of rows became.
    pub(super) fn learn(&mut self, row_bytes: usize, encoded_bytes: usize) {
        let (least, most) = (ROWS_OF_1024.0, self.most_rows_of_1024);
        let found = row_bytes.saturating_mul(1_024) / encoded_bytes.max(1);
        let found = found.clamp(least, most);
        // Later a quarter of the way to each new value: one odd chunk does not mislead the next.
        self.rows_of_1024 = if self.learned {
            self.rows_of_1024.saturating_mul(3).saturating_add(found) / 4
        } else {
            found
        };
        self.learned = true;
    }

    /// How soon to look again where a chunk should be full after so long, and looking pays after
    /// `worthwhile`.
    ///
    /// Several small chunks are made in one go, but none that is full waits for others for longer
    /// than an eighth of the wait time.
    pub(super) fn look(&self, full: Duration, worthwhile: Duration) -> Duration {
        let tick = self.tick(0);
        let soonest = (tick / 8).max(LEAST_TICK);
        // At the latest: a rate that rises is to be noticed.
        full.max(worthwhile.min(tick))
            .max(soonest)
            .min(self.longest_tick())
    }

    /// How often to look into the queues while it is not known when a chunk should be full: often
    /// enough that the wait time is kept, and the more rarely the longer nothing came.
    pub(super) fn tick(&self, idle_ticks: u32) -> Duration {
        let doubled = 1_u32.checked_shl(idle_ticks.min(8)).unwrap_or(1);
        (self.wait / 8)
            .min(Duration::from_millis(100))
            .saturating_mul(doubled)
            .min(self.longest_tick())
            .max(LEAST_TICK)
    }

    /// No record waits for longer than its wait time if two looks are not further apart than this.
    fn longest_tick(&self) -> Duration {
        (self.wait / 2)
            .min(Duration::from_millis(500))
            .max(LEAST_TICK)
    }
}

/// Looks are no closer than this, however short the wait time is.
const LEAST_TICK: Duration = Duration::from_millis(1);

/// How often a collector looks that waits for chunks of so many records, where so many come a second.
pub(super) fn looks_per_second(records: f64, wait: Duration, rate: f64) -> f64 {
    let rule = ClosingRule::new(usize::MAX, usize::MAX, wait);
    let takes = |records: f64| {
        Duration::try_from_secs_f64(records / rate.max(f64::MIN_POSITIVE)).unwrap_or(Duration::MAX)
    };
    let every = rule.look(takes(records), takes(LOOK_RECORDS.into()));
    every.as_secs_f64().recip()
}

/// How long chunks take to fill.
///
/// Threads wake nobody when they have emitted a chunk's worth, so the collector looks when there
/// should be one.
#[derive(Debug)]
pub(super) struct Filling {
    /// Chunks that the present round filled.
    chunks: u32,
    /// Their records.
    filled: usize,
    /// Records that left their batch since the last round that filled any, in whatever chunk.
    closed: usize,
    /// Records that this round left behind in batches.
    kept: usize,
    /// When it began.
    last: Instant,
    /// How long each of its chunks took.
    took: Option<Duration>,
}

/// A look is made for so many records at least, unless that takes too long: waking the collector and
/// whatever sends, all with cold caches, takes as much CPU time as emitting and encoding a thousand
/// and more of them (the kept study of `baler sweep` finds some 370 us a look and 210 ns a record).
const LOOK_RECORDS: u32 = 1_024;

/// A chunk is looked for later than it should be full by this part of the time that it takes to fill.
const LATER: u32 = 16;

/// So many of so many parts of a time.
fn part_of(time: Duration, parts: usize, of: usize) -> Duration {
    let [parts, of] = [parts, of].map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    time.saturating_mul(parts) / of.max(1)
}

impl Filling {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            chunks: 0,
            filled: 0,
            closed: 0,
            kept: 0,
            last: now,
            took: None,
        }
    }

    /// A chunk of so many records was closed.
    pub(super) fn closed(&mut self, reason: ClosedBy, records: usize) {
        self.closed = self.closed.saturating_add(records);
        if matches!(reason, ClosedBy::Records | ClosedBy::Bytes) {
            self.chunks = self.chunks.saturating_add(1);
            self.filled = self.filled.saturating_add(records);
        }
    }

    /// A round is over that began at this time and left so many records in batches.
    pub(super) fn end_round(&mut self, began: Instant, kept: usize) {
        if self.chunks == 0 {
            return;
        }
        // By record: that a round came late shows in what it left behind.
        let came = self.closed.saturating_add(kept).saturating_sub(self.kept);
        let time = began.saturating_duration_since(self.last);
        self.took = Some(part_of(time, self.filled, came) / self.chunks);
        *self = Self {
            took: self.took,
            kept,
            ..Self::new(began)
        };
    }

    /// How long after a round that began at this time a chunk should be full that lacks so many of
    /// its records; nothing while that is not known.
    pub(super) fn left(&self, began: Instant, lacks: usize, records: usize) -> Option<Duration> {
        // What has not come for long will not come soon.
        let took = self.took?.max(began.saturating_duration_since(self.last));
        let left = part_of(took, lacks, records);
        // A little later: records come in bursts, and who comes before the last one of a chunk comes
        // for nothing and has to come again.
        Some(left.saturating_add(took / LATER))
    }

    /// How soon to look again at the earliest, whatever is full by then: what a look and its sending
    /// cost is shared by some records. Nothing while it is not known how fast they come.
    pub(super) fn worthwhile(&self, records: usize) -> Option<Duration> {
        let records = u32::try_from(records).unwrap_or(u32::MAX);
        let took = self.took?;
        Some(took.saturating_mul(LOOK_RECORDS) / records.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(500);

    #[test]
    fn chunk_closes_on_whichever_of_records_and_bytes_comes_first() {
        let rule = ClosingRule::new(10, 1_000, WAIT);
        assert_eq!(rule.full(0, 0), None);
        assert_eq!(rule.full(9, 999), None);
        assert_eq!(rule.full(10, 10), Some(ClosedBy::Records));
        assert_eq!(rule.full(9, 1_000), Some(ClosedBy::Bytes));
    }

    #[test]
    fn chunk_closes_when_its_oldest_record_has_waited() {
        let rule = ClosingRule::new(10, 1_000, WAIT);
        let oldest = Instant::now();
        assert_eq!(rule.closes_at(oldest), Some(oldest + WAIT));
    }

    #[test]
    fn threshold_counts_what_is_sent_and_not_the_rows() {
        let mut rule = ClosingRule::new(usize::MAX, 1_000, WAIT);
        for _ in 0..50 {
            rule.learn(4_000, 1_000);
        }
        assert_eq!(rule.full(1, 3_900), None);
        assert_eq!(rule.full(1, 4_000), Some(ClosedBy::Bytes));
        for _ in 0..50 {
            rule.learn(1_000_000, 1);
        }
        assert_eq!(
            rule.full(1, 16_000),
            Some(ClosedBy::Bytes),
            "the batch stays bounded"
        );
    }

    #[test]
    fn budget_bounds_the_rows_of_a_batch() {
        let mut rule = ClosingRule::new(usize::MAX, 1_000, WAIT).within_budget();
        rule.learn(1_000_000, 1);
        assert_eq!(rule.full(1, 1_999), None);
        assert_eq!(rule.full(1, 2_000), Some(ClosedBy::Bytes));
    }

    #[test]
    fn next_chunk_is_expected_to_take_as_long_as_the_last_ones_did() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut filling = Filling::new(start);
        assert_eq!(filling.left(at(5), 10, 10), None);
        assert_eq!(filling.worthwhile(10), None);
        for _ in 0..4 {
            filling.closed(ClosedBy::Records, 100);
        }
        filling.end_round(at(8), 0);
        // Two milliseconds each, of which half a chunk is there; and a sixteenth of them later.
        let left = |filling: &Filling, ms| filling.left(at(ms), 50, 100);
        let later = |us: u64| Some(Duration::from_micros(us * 1_000 / 16 * 9));
        assert_eq!(left(&filling, 8), later(2));
        assert_eq!(filling.worthwhile(128), Some(Duration::from_millis(16)));
        // A round that fills none changes nothing, until too many of them did.
        filling.closed(ClosedBy::Age, 30);
        filling.end_round(at(9), 20);
        assert_eq!(left(&filling, 9), later(2));
        assert_eq!(left(&filling, 108), later(100));
    }

    #[test]
    fn round_that_comes_late_does_not_make_chunks_take_longer() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut filling = Filling::new(start);
        // Ten records a millisecond.
        let mut round = |ms, chunks, kept| {
            (0..chunks).for_each(|_| filling.closed(ClosedBy::Records, 1_000));
            filling.end_round(at(ms), kept);
            filling.took
        };
        let exactly = Some(Duration::from_millis(100));
        assert_eq!(round(130, 1, 300), exactly);
        assert_eq!(round(190, 0, 900), exactly);
        assert_eq!(round(205, 1, 50), exactly);
        assert_eq!(round(415, 2, 150), exactly);
        // Half of the next chunk was flushed.
        filling.closed(ClosedBy::Flush, 650);
        filling.closed(ClosedBy::Records, 1_000);
        filling.end_round(at(580), 150);
        assert_eq!(filling.took, exactly);
    }

    #[test]
    fn idle_collector_looks_more_rarely_but_twice_in_a_wait_time() {
        let rule = ClosingRule::new(10, 1_000, WAIT);
        assert_eq!(rule.tick(0), WAIT / 8);
        assert_eq!(rule.tick(1), WAIT / 4);
        assert_eq!(rule.tick(u32::MAX), WAIT / 2);
        let hasty = ClosingRule::new(10, 1_000, Duration::ZERO);
        assert_eq!(hasty.tick(0), LEAST_TICK);
    }
    #[test]
    fn chunk_is_looked_for_when_it_should_be_full_and_several_small_ones_together() {
        let rule = ClosingRule::new(10, 1_000, WAIT);
        let ms = Duration::from_millis;
        assert_eq!(rule.look(ms(102), ms(25)), ms(102));
        assert_eq!(rule.look(ms(3), ms(25)), ms(25));
        assert_eq!(rule.look(ms(3), ms(1)), WAIT / 64);
        assert_eq!(rule.look(ms(3), ms(200)), WAIT / 8);
        assert_eq!(rule.look(Duration::MAX, ms(25)), WAIT / 2);
        let looks = |records, rate| looks_per_second(records, WAIT, rate).round();
        assert!((looks(1.0, 10_000.0) - 16.0).abs() < 1e-9);
        assert!((looks(512.0, 10_000.0) - 16.0).abs() < 1e-9);
        assert!((looks(1.0, 50_000.0) - 49.0).abs() < 1e-9);
        assert!((looks(1_024.0, 10_000.0) - 10.0).abs() < 1e-9);
        assert!((looks(1_024.0, 0.0) - 4.0).abs() < 1e-9);
        assert!((looks(1.0, 1e9) - 128.0).abs() < 1e-9);
    }
}
