//! Figures: at any time, and at the end.

use std::fmt;
use std::time::Duration;

use baler_common::container::{LossReason, Losses};
use baler_common::transport::OutboxStats;

use super::closing::ClosedBy;

/// What a controller and its collector have done so far.
///
/// At any time `emitted` is `delivered`, `spooled`, `dropped` and the records on their way.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Records emitted while enabled, taken or not.
    pub emitted: u64,
    /// Records in chunks that the medium confirmed.
    pub delivered: u64,
    /// Records in chunks that were put on local disk while the medium was away. What became of them
    /// since is in [`OutboxStats::writer`].
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
    /// Chunks that were put on local disk while the medium was away.
    pub chunks_spooled: u64,
    /// Chunks that the medium refused or did not confirm in time. The records of one that was too
    /// large are in other chunks.
    pub chunks_given_up: u64,
    /// Chunks made. After the shutdown they are those delivered, spooled and given up together.
    pub chunks_encoded: u64,
    /// Bytes that the chunks' records had as rows, each distinct string of a chunk counted once.
    pub row_bytes: u64,
    /// Bytes of the chunks made.
    pub encoded_bytes: u64,
    /// Why chunks were closed. The counts add up to the chunks made.
    pub closed_by: ClosedByCounts,
    /// How often a chunk was too large and had to be taken apart.
    pub splits: u64,
    /// Records put aside because they cannot be sent; they are part of `dropped`.
    pub quarantined: u64,
    /// Panics of serializers and of the collector itself that were caught.
    pub panics: u64,
    /// How many records a chunk has as it was set, or as the collector chose for the present rate
    /// ([`ControllerBuilder::auto_chunks`](crate::ControllerBuilder::auto_chunks)).
    pub chunk_records: u64,
    /// When a chunk's oldest record has waited long enough, as it was set or chosen.
    pub wait_time: Duration,
    /// Retries, chunks in flight, and the connection's state.
    pub outbox: OutboxStats,
}

/// How many chunks were closed, by reason. The pieces of a chunk that was too large count each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClosedByCounts {
    /// By the age of the oldest record.
    pub age: u64,
    /// By encoded bytes.
    pub bytes: u64,
    /// By a flush or the shutdown, the chunk that marks the end included.
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
        *count = count.saturating_add(1);
    }
}

/// How a controller ended. `emitted` is `delivered` plus `spooled` plus all of `dropped`, exactly.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Whether everything was done before the deadline.
    pub on_time: bool,
    /// What went wrong while closing, if anything did.
    pub error: Option<Box<str>>,
    /// The final figures.
    pub stats: Stats,
}

impl ShutdownReport {
    /// That of a parent's controller in the child of a fork: its records are accounted for in the
    /// parent.
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

    /// Records put on local disk while the medium was away.
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

/// One line that adds up.
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
