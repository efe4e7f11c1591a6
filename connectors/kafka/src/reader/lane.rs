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
    /// An offset was fetched; whether it is new.
    pub(super) fn fetched(&mut self, offset: i64) -> bool {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lag_counts_from_the_first_offset_that_is_not_settled() {
        let mut lane = Lane::default();
        assert_eq!(lane.lag(), None);
        lane.said(None, 15);
        assert_eq!(lane.lag(), None, "nobody said where the group stands");
        lane.said(Some(3), 15);
        lane.said(Some(10), 15);
        lane.said(None, 15);
        assert_eq!(lane.lag(), Some(5));
        for offset in 10..20 {
            lane.fetched(offset);
        }
        assert_eq!(lane.lag(), Some(10), "brokers have not spoken since");
        lane.settled(11);
        assert_eq!(lane.lag(), Some(10), "the watermark has not moved");
        lane.settled(10);
        lane.said(Some(3), 30);
        assert_eq!(lane.lag(), Some(18));
        for offset in 12..20 {
            lane.settled(offset);
        }
        assert_eq!(lane.lag(), Some(10));
    }

    proptest! {
        #[test]
        fn watermark_is_the_last_offset_before_the_first_unsettled(
            gaps in prop::collection::vec(1_i64..4, 1..40),
            order in prop::collection::vec(any::<prop::sample::Index>(), 1..80),
        ) {
            let offsets: Vec<i64> = gaps.iter().scan(10, |at, gap| { *at += gap; Some(*at) }).collect();
            let mut lane = Lane::default();
            for offset in &offsets {
                prop_assert!(lane.fetched(*offset));
                prop_assert!(!lane.fetched(*offset));
            }
            let mut open: BTreeSet<i64> = offsets.iter().copied().collect();
            let mut watermark = None;
            for index in order {
                let offset = offsets[index.index(offsets.len())];
                open.remove(&offset);
                watermark = lane.settled(offset).or(watermark);
                let first = open.first().copied().unwrap_or(i64::MAX);
                let expected = offsets.iter().copied().take_while(|it| *it < first).last();
                prop_assert_eq!(watermark, expected);
            }
        }
    }
}
