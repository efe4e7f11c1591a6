//! The collector chooses chunk size, wait time and poll interval itself, within a limit of the
//! latency.
//!
//! ```text
//! records taken ----> rate -----\
//! chunks encoded ---> bytes -----> Tuner -> records | wait | poll_interval
//! ```
//!
//! The larger a chunk, the less each of its records costs, until its share of the message's cost is
//! negligible. So a chunk closes after half of the latency limit, or at the largest useful size if
//! records come so fast that it is reached sooner. The other half is for the remaining steps:
//! waking late, encoding, the medium and its confirmation. The threshold of records is always the
//! largest useful size. It need not follow the rate, and is right at once for a load that becomes a
//! thousand times as large.
//!
//! Only the poll interval must follow the rate. At low rates, wake-ups are most of the collector's
//! cost. It wakes when the oldest record has to leave, takes everything and closes, once a chunk.
//! At high rates it wakes when enough records for a chunk have come. If it waked later, the rows
//! would have left the cache; if it woke more often, the wake-ups would cost more. An unexpected
//! burst wakes it: the queues wake it when a quarter of their bytes is unread.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

/// The limits of a tuner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// The longest time from emitting a record to its confirmation.
    pub(crate) max_latency: Duration,
    /// The longest time that a record waits for its chunk to be closed.
    pub(crate) max_wait: Option<Duration>,
    /// The limit of a chunk's bytes.
    pub(crate) chunk_bytes: usize,
    /// The bytes of all queues.
    pub(crate) queue_bytes: usize,
}

/// The values that a tuner chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    /// A chunk closes at this number of records.
    pub(crate) records: usize,
    /// A chunk closes when its oldest record has waited for this time.
    pub(crate) wait: Duration,
    /// The time between two polls of the collector.
    pub(crate) poll_interval: Duration,
    /// The number of records in a chunk at the present rate.
    pub(crate) expected: usize,
}

/// Seconds of CPU time for a message (waking the collector, a header, schemas, system calls, a
/// confirmation), for a record (queue, batch, encoding) and for a byte of a message.
///
/// Measured over TCP without compression on two busy cores of a server's processor. Only their
/// ratio counts: a machine that is twice as fast has the same best size.
const MESSAGE_SECONDS: f64 = 100e-6;
const RECORD_SECONDS: f64 = 150e-9;
const BYTE_SECONDS: f64 = 1e-9;

/// A chunk above the largest useful size saves less than this share of a record's cost.
const SAVING: f64 = 0.02;

/// The largest size that a tuner chooses. The batch fits into the caches of most machines, and the
/// loss of one chunk is acceptable.
const MOST_RECORDS: f64 = 65_536.0;

/// The shortest time between two polls of the collector, ...
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// ... and the longest one: it has other work, too.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The share of the queues' bytes that may be unread. At a quarter, emitting threads wake the
/// collector.
const UNREAD: f64 = 3.0 / 16.0;

/// The assumed bytes of a record in a chunk, before any chunk was made, ...
const BYTES_OF_RECORD: f64 = 32.0;

/// ... and as a row.
const BYTES_OF_ROW: f64 = 64.0;

/// Chooses from the observations passed to it. It has no thread and no clock.
#[derive(Debug)]
pub(crate) struct Tuner {
    pub(super) tuning: Tuning,
    rate: Rate,
    /// Bytes of a record in a chunk.
    bytes_of_record: f64,
    /// Bytes of a record in the queues.
    bytes_of_row: f64,
    choice: Choice,
}

impl Tuner {
    pub(crate) fn new(tuning: Tuning, now: Instant) -> Self {
        let mut tuner = Self {
            tuning,
            rate: Rate::new(now),
            bytes_of_record: BYTES_OF_RECORD,
            bytes_of_row: BYTES_OF_ROW,
            choice: Choice {
                records: 1,
                wait: Duration::ZERO,
                poll_interval: Duration::ZERO,
                expected: 1,
            },
        };
        tuner.choose();
        tuner
    }

    /// The current choice.
    pub(crate) fn choice(&self) -> Choice {
        self.choice
    }

    /// Learns from a chunk of `records` records, which had `row_bytes` bytes in the queues and have
    /// `bytes` bytes in the chunk.
    pub(crate) fn encoded(&mut self, records: usize, row_bytes: usize, bytes: usize) {
        let records = as_f64(records);
        if records < 1.0 {
            return;
        }
        // Small chunks have more bytes for each record, and say little about large ones.
        let weight = (records / (records + 1_024.0)).max(1.0 / 16.0);
        let learn = |known: &mut f64, bytes: usize| {
            *known += (as_f64(bytes) / records - *known) * weight;
        };
        learn(&mut self.bytes_of_record, bytes);
        learn(&mut self.bytes_of_row, row_bytes);
    }

    /// Chooses anew after a poll; `taken` is the number of records taken from the queues so far.
    /// Returns whether the published choice changed.
    pub(crate) fn polled(&mut self, taken: u64, now: Instant) -> bool {
        let enough = (self.choice.poll_interval / 2).max(MIN_POLL_INTERVAL);
        self.rate.observe(taken, now, enough, self.choice.records);
        let before = self.choice;
        self.choose();
        (before.expected, before.wait) != (self.choice.expected, self.choice.wait)
    }

    fn choose(&mut self) {
        let Tuning {
            max_latency,
            max_wait,
            chunk_bytes,
            queue_bytes,
        } = self.tuning;
        let left = max_latency / 2;
        let wait = max_wait.map_or(left, |most| most.min(left));
        let rate = self.rate.per_second();
        let record = RECORD_SECONDS + BYTE_SECONDS * self.bytes_of_record;
        let useful = (MESSAGE_SECONDS / (SAVING * record)).clamp(1.0, MOST_RECORDS);
        let useful_now = useful
            .min(as_f64(chunk_bytes) / self.bytes_of_record.max(1.0))
            .max(1.0);
        let expected = useful_now.min((rate * wait.as_secs_f64()).max(1.0));
        // Poll before emitting threads have to wake the collector: that costs them more than their
        // records.
        let unread = as_f64(queue_bytes) * UNREAD / self.bytes_of_row.max(1.0);
        let to_fill = useful_now.min(unread).max(1.0) / rate.max(1e-3);
        let to_fill = Duration::try_from_secs_f64(to_fill).unwrap_or(MAX_POLL_INTERVAL);
        self.choice = Choice {
            records: whole(useful),
            wait,
            poll_interval: to_fill
                .max(MIN_POLL_INTERVAL)
                .min(wait)
                .min(MAX_POLL_INTERVAL),
            expected: whole(expected),
        };
    }
}

/// Converts a number that is small enough to be exact.
#[expect(
    clippy::cast_precision_loss,
    reason = "bytes and records of a chunk are far below 2^53"
)]
pub(super) fn as_f64(number: usize) -> f64 {
    number as f64
}

/// Returns the nearest whole number, at least 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and nothing is negative"
)]
fn whole(number: f64) -> usize {
    number.round().max(1.0) as usize
}

/// A moving average of a rate. Each observation moves it at least half of the way, and further
/// after a longer time. Observations are closer together at higher rates.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: f64,
    /// The number of records and the time at the last observation.
    since: (u64, Instant),
}

/// An observation of this length counts as much as all earlier ones.
const MEMORY: Duration = Duration::from_millis(50);

impl Rate {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            per_second: 0.0,
            since: (0, now),
        }
    }

    pub(super) fn per_second(&self) -> f64 {
        self.per_second
    }

    /// Returns the time in which this number of records arrives; practically for ever at a rate of
    /// 0.
    pub(super) fn time_for(&self, records: f64) -> Duration {
        let seconds = records / self.per_second.max(f64::MIN_POSITIVE);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Observes that `taken` records have come so far. The observation counts after `enough` time
    /// or `many` records since the last one: a poll that finds three records says nothing about a
    /// second.
    pub(super) fn observe(&mut self, taken: u64, now: Instant, enough: Duration, many: usize) {
        let (before, since) = self.since;
        let time = now.duration_since(since);
        let records = taken - before;
        let are_many = usize::try_from(records).is_ok_and(|records| records >= many);
        if time.is_zero() || (time < enough && !are_many) {
            return;
        }
        self.since = (taken, now);
        #[expect(
            clippy::cast_precision_loss,
            reason = "records of some seconds are below 2^53"
        )]
        let rate = records as f64 / time.as_secs_f64();
        let weight = time.as_secs_f64() / (time + MEMORY).as_secs_f64();
        self.per_second += (rate - self.per_second) * weight.max(0.5);
    }
}
