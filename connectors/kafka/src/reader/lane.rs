//! How far a partition was settled.

use std::collections::BTreeMap;

/// The offsets of a partition that were fetched, and how far they were settled.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Every offset from the watermark on, and whether it is settled.
    pending: BTreeMap<i64, bool>,
}

impl Lane {
    /// An offset was fetched; whether it is new.
    pub(super) fn fetched(&mut self, offset: i64) -> bool {
        let new = !self.pending.contains_key(&offset);
        if new {
            self.pending.insert(offset, false);
        }
        new
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
