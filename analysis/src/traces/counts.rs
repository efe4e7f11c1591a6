//! The counts of traces and of their records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tree::Reason;

/// The counts. Every trace is in one of `valid`, `invalid` and `incomplete`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceCounts {
    /// Records of traces, including late ones and copies.
    pub records: u64,
    /// Executions outside traces, and spans that cannot be read.
    pub untraced: u64,
    /// Records that came twice; the second one is dropped.
    pub copies: u64,
    /// Spans whose parent is not there: they begin at the entry.
    #[serde(default)]
    pub spans_without_parent: u64,
    /// Traces with records that came after they had been closed.
    pub late: u64,
    /// The number of these late records.
    pub late_records: u64,
    /// Valid traces, including repaired ones.
    pub valid: u64,
    /// Traces that are valid because missing ends of calls were added.
    pub repaired: u64,
    /// Asynchronous calls in valid traces.
    #[serde(default)]
    pub asynchronous: u64,
    /// Chunks that came again, and were skipped.
    pub chunk_copies: u64,
    /// Chunks that are in two merged results. For traces that were still open, copies are dropped;
    /// other traces of such chunks count twice.
    pub shared_chunks: u64,
    /// Traces that contradict themselves.
    pub invalid: BTreeMap<Reason, u64>,
    /// Traces that lack records.
    pub incomplete: BTreeMap<Reason, u64>,
    /// Traces whose caller was found in another trace.
    pub linked: u64,
    /// Traces whose caller is in a trace that was not found, or is not valid.
    pub parent_missing: u64,
    /// Valid traces beyond the limit of classes.
    pub without_class: u64,
    /// Valid traces beyond the limit of sessions.
    pub without_session: u64,
}

impl TraceCounts {
    /// Returns these counts, with an assembler's counts of records.
    #[must_use]
    pub(super) fn with_records(self, records: &Self) -> Self {
        Self {
            records: records.records,
            untraced: records.untraced,
            copies: records.copies,
            spans_without_parent: records.spans_without_parent,
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
            (&mut self.spans_without_parent, other.spans_without_parent),
            (&mut self.asynchronous, other.asynchronous),
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
            add_count(sum, more);
        }
        let reasons = [
            (&mut self.invalid, &other.invalid),
            (&mut self.incomplete, &other.incomplete),
        ];
        for (sums, more) in reasons {
            for (reason, count) in more {
                add_count(sums.entry(*reason).or_default(), *count);
            }
        }
    }
}

/// Adds a count or a time in nanoseconds. Saved results may have any, so the sum stays below 2^63:
/// what is counted one by one after that fits, too.
pub(super) fn add_count(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more).min(u64::MAX >> 1);
}
