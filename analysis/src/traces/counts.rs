//! What is counted of records and traces.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tree::Reason;

/// What was counted. Every trace is in one of `valid`, `invalid` and `incomplete`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceCounts {
    /// Records of traces, late ones and copies included.
    pub records: u64,
    /// Executions outside of traces.
    pub untraced: u64,
    /// Records that were there twice; the second one is dropped.
    pub copies: u64,
    /// Traces of which records came after they had been closed.
    pub late: u64,
    /// These records.
    pub late_records: u64,
    /// Valid traces, repaired ones included.
    pub valid: u64,
    /// Traces that are valid because missing ends of calls were added.
    pub repaired: u64,
    /// Chunks that came again, and were passed over.
    pub chunk_copies: u64,
    /// Chunks that are in two results that were added up. Of traces that were still open there copies
    /// are dropped; other traces of such chunks count twice.
    pub shared_chunks: u64,
    /// Traces that contradict themselves.
    pub invalid: BTreeMap<Reason, u64>,
    /// Traces that lack records.
    pub incomplete: BTreeMap<Reason, u64>,
    /// Traces whose caller is in another trace that was found.
    pub linked: u64,
    /// Traces whose caller is in another trace that was not found, or is not valid.
    pub parent_missing: u64,
    /// Valid traces beyond the bound of classes.
    pub without_class: u64,
    /// Valid traces beyond the bound of sessions.
    pub without_session: u64,
}

impl TraceCounts {
    /// These counts, with those of records from an assembler.
    #[must_use]
    pub(super) fn with_records(self, records: &Self) -> Self {
        Self {
            records: records.records,
            untraced: records.untraced,
            copies: records.copies,
            late: records.late,
            late_records: records.late_records,
            chunk_copies: records.chunk_copies,
            shared_chunks: records.shared_chunks,
            ..self
        }
    }

    /// Adds other counts.
    pub(super) fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.records, other.records),
            (&mut self.untraced, other.untraced),
            (&mut self.copies, other.copies),
            (&mut self.late, other.late),
            (&mut self.late_records, other.late_records),
            (&mut self.chunk_copies, other.chunk_copies),
            (&mut self.shared_chunks, other.shared_chunks),
            (&mut self.valid, other.valid),
            (&mut self.repaired, other.repaired),
            (&mut self.linked, other.linked),
            (&mut self.parent_missing, other.parent_missing),
            (&mut self.without_class, other.without_class),
            (&mut self.without_session, other.without_session),
        ] {
            *sum = sum.saturating_add(more);
        }
        let reasons = [
            (&mut self.invalid, &other.invalid),
            (&mut self.incomplete, &other.incomplete),
        ];
        for (sums, more) in reasons {
            for (reason, count) in more {
                let sum = sums.entry(*reason).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }

    pub(super) fn add_copies(&mut self, copies: usize) {
        self.copies = self
            .copies
            .saturating_add(u64::try_from(copies).unwrap_or(u64::MAX));
    }
}
