//! How far a partition was settled.

use std::collections::BTreeMap;

/// The offsets of a partition that were fetched, and how far they were settled.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Every offset from the watermark on, and whether it is settled.
    pending: BTreeMap<i64, bool>,
    /// The offset behind the last one that was fetched.
    next: Option<i64>,
    /// Where the group stood before anything was fetched, as was last said.
    start: Option<i64>,
    /// The offset behind the last one of the partition, as the brokers last said.
    end: Option<i64>,
    /// Whether the last fetch found nothing more.
    pub(super) is_at_end: bool,
}

impl Lane {
    /// An offset came; whether it is new.
    pub(super) fn arrive(&mut self, offset: i64) -> bool {
        self.is_at_end = false;
        let new = !self.pending.contains_key(&offset);
        if new {
            self.pending.insert(offset, false);
            self.next = self.next.max(offset.checked_add(1));
        }
        new
    }

    /// What brokers say of the partition. `start`: where the group stands, if nothing was fetched;
    /// the last one counts, since the client may first tell what it knew of an earlier assignment.
    pub(super) fn said(&mut self, start: Option<i64>, end: i64) {
        self.start = start.or(self.start);
        self.end = self.end.max(Some(end));
    }

    /// Whether nothing was fetched and nobody said where the group stands.
    pub(super) fn lacks_start(&self) -> bool {
        self.next.or(self.start).is_none()
    }

    /// How many offsets of the partition are not settled, as far as brokers said.
    pub(super) fn lag(&self) -> Option<u64> {
        let first = self.pending.first_key_value().map(|(offset, _)| *offset);
        let watermark = first.or(self.next).or(self.start)?;
        // What was fetched since the brokers spoke is there as well.
        let end = self.end?.max(self.next.unwrap_or(watermark));
        u64::try_from(end.saturating_sub(watermark)).ok()
    }

    /// An offset is settled; yields the last one of the contiguous settled ones when the watermark
    /// moves.
    pub(super) fn settled(&mut self, offset: i64) -> Option<i64> {
        if let Some(settled) = self.pending.get_mut(&offset) {
            *settled = true;
        }
        let mut last = None;
        while let Some(first) = self.pending.first_entry().filter(|first| *first.get()) {
            last = Some(first.remove_entry().0);
        }
        last
    }

    /// How many offsets wait behind the watermark.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }
}
