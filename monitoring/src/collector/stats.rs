//! The figures of a controller, at any time and at its end.

use std::fmt;
use std::time::Duration;

use baler_common::container::{LossReason, Losses};
use baler_common::transport::OutboxStats;

use super::closing::ClosedBy;

/// The figures of a controller and its collector so far.
///
/// At any time `emitted` is the sum of `delivered`, `spooled`, `dropped` and the records in flight.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Records emitted while enabled, accepted or not.
    pub emitted: u64,
    /// Records in chunks that the medium confirmed.
    pub delivered: u64,
    /// Records in chunks that were stored on local disk while the medium was away. Their later fate
    /// is in [`OutboxStats::writer`].
    pub spooled: u64,
    /// Records lost, by reason.
    pub dropped: Losses,
    /// Records in the queues.
    pub queued: u64,
    /// Bytes of the queues' blocks.
    pub queue_bytes: usize,
    /// Chunks that the medium confirmed.
    pub chunks_delivered: u64,
    /// Bytes of the chunks that the medium confirmed.
    pub bytes_delivered: u64,
    /// Chunks that were stored on local disk while the medium was away.
    pub chunks_spooled: u64,
    /// Chunks that the medium refused or did not confirm in time. If a chunk was too large, its
    /// records are in other chunks.
    pub chunks_given_up: u64,
    /// Chunks made. After the shutdown this is the sum of the delivered, spooled and given up
    /// chunks.
    pub chunks_encoded: u64,
    /// Bytes of the chunks' records as rows. Each distinct string of a chunk counts once.
    pub row_bytes: u64,
    /// Bytes of the chunks made.
    pub encoded_bytes: u64,
    /// Why chunks were closed. The counts add up to the chunks made.
    pub closed_by: ClosedByCounts,
    /// How often a chunk was too large and had to be split.
    pub splits: u64,
    /// Records in quarantine because they cannot be sent; they are part of `dropped`.
    pub quarantined: u64,
    /// Panics of serializers and of the collector itself that were caught.
    pub panics: u64,
    /// Records in a chunk: the configured number, or the collector's choice for the present rate
    /// ([`ControllerBuilder::auto_chunks`](crate::ControllerBuilder::auto_chunks)).
    pub chunk_records: u64,
    /// The time after which a chunk's oldest record has waited long enough, configured or chosen.
    pub wait_time: Duration,
    /// Retries, chunks in flight, and the connection's state.
    pub outbox: OutboxStats,
}

/// The number of closed chunks, by reason. Each piece of a chunk that was too large counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClosedByCounts {
    /// By the age of the oldest record.
    pub age: u64,
    /// By encoded bytes.
    pub bytes: u64,
    /// By a flush or the shutdown, including the chunk that marks the end.
    pub flush: u64,
    /// By the number of records.
    pub records: u64,
}

impl ClosedByCounts {
    /// The count of one reason.
    pub const fn of(&self, reason: ClosedBy) -> u64 {
        match reason {
            ClosedBy::Age => self.age,
            ClosedBy::Bytes => self.bytes,
            ClosedBy::Flush => self.flush,
            ClosedBy::Records => self.records,
        }
    }

    pub(super) fn count(&mut self, reason: ClosedBy) {
        let count = match reason {
            ClosedBy::Age => &mut self.age,
            ClosedBy::Bytes => &mut self.bytes,
            ClosedBy::Flush => &mut self.flush,
            ClosedBy::Records => &mut self.records,
        };
        *count += 1;
    }
}

/// How a controller ended. `emitted` is `delivered` plus `spooled` plus all of `dropped`, exactly.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Whether everything was done before the deadline.
    pub on_time: bool,
    /// The error while closing, if any.
    pub error: Option<Box<str>>,
    /// The final figures.
    pub stats: Stats,
}

impl ShutdownReport {
    /// The report in a forked child, for the controller of its parent. The parent accounts for its
    /// records.
    pub(crate) fn of_parent() -> Self {
        let error = "the controller and its records are those of the process that this one was \
                     forked from";
        Self {
            error: Some(error.into()),
            ..Self::default()
        }
    }

    /// Records emitted.
    pub fn emitted(&self) -> u64 {
        self.stats.emitted
    }

    /// Records delivered.
    pub fn delivered(&self) -> u64 {
        self.stats.delivered
    }

    /// Records stored on local disk while the medium was away.
    pub fn spooled(&self) -> u64 {
        self.stats.spooled
    }

    /// Records lost, by reason.
    pub fn dropped(&self) -> &Losses {
        &self.stats.dropped
    }

    /// Whether `emitted` is `delivered` plus `spooled` plus all of `dropped`.
    pub fn adds_up(&self) -> bool {
        let kept = self.delivered().checked_add(self.spooled());
        kept.and_then(|kept| kept.checked_add(self.dropped().total())) == Some(self.emitted())
    }
}

/// One line of figures that add up.
impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (emitted, delivered) = (self.emitted(), self.delivered());
        let dropped = self.dropped().total();
        write!(f, "{emitted} emitted = {delivered} delivered + ")?;
        if self.spooled() > 0 {
            write!(f, "{} spooled + ", self.spooled())?;
        }
        write!(f, "{dropped} dropped")?;
        let mut between = " (";
        for (code, records) in self.dropped().iter() {
            match LossReason::from_code(code) {
                Some(reason) => write!(f, "{between}{records} {reason}")?,
                None => write!(f, "{between}{records} for reason {code}")?,
            }
            between = ", ";
        }
        if between == ", " {
            f.write_str(")")
        } else {
            Ok(())
        }
    }
}
