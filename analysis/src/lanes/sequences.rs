//! A set of sequence numbers, held as ranges.

use std::collections::BTreeMap;

/// A set of sequence numbers, held as disjoint ranges: small while a lane arrives in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sequences {
    /// First number of a range -> its last. Ranges neither touch nor overlap.
    ranges: BTreeMap<u64, u64>,
}

impl Sequences {
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.ranges
            .range(..=number)
            .next_back()
            .is_some_and(|(_, last)| *last >= number)
    }

    /// Adds `first..=last`.
    pub(crate) fn insert(&mut self, first: u64, last: u64) {
        let (mut first, mut last) = (first, last.max(first));
        // Every range that overlaps or touches becomes part of the new one.
        let reach = last.saturating_add(1);
        while let Some((&from, &to)) = self.ranges.range(..=reach).next_back() {
            if to.saturating_add(1) < first {
                break;
            }
            self.ranges.remove(&from);
            first = first.min(from);
            last = last.max(to);
        }
        self.ranges.insert(first, last);
    }

    /// Its ranges as first and last number, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|(first, last)| (*first, *last))
    }

    /// How many ranges it takes.
    pub(crate) fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// The numbers missing between its ranges, as first and last number, in order.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let after = self.ranges.iter().skip(1);
        self.ranges
            .values()
            .zip(after)
            .map(|(last, (next, _))| (last.saturating_add(1), next.saturating_sub(1)))
    }

    /// The parts of its ranges that lie in `first..=last`, in order.
    pub(crate) fn within(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, u64)> {
        let before = self.ranges.range(..first).next_back();
        before
            .into_iter()
            .chain(self.ranges.range(first..=last.max(first)))
            .map(move |(from, to)| ((*from).max(first), (*to).min(last)))
            .filter(|(from, to)| from <= to)
    }

    /// Forgets the lowest range; returns the number below which nothing is known any more.
    pub(crate) fn forget_lowest(&mut self) -> Option<u64> {
        let (_, last) = self.ranges.pop_first()?;
        Some(last.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_set_of_what_was_inserted(
            inserted in prop::collection::vec((0_u64..60, 0_u64..6), 0..40),
        ) {
            let mut sequences = Sequences::default();
            let mut model = BTreeSet::new();
            for (first, more) in inserted {
                sequences.insert(first, first + more);
                model.extend(first..=first + more);
            }
            for number in 0..80 {
                prop_assert_eq!(sequences.contains(number), model.contains(&number));
            }
            let missing: BTreeSet<u64> =
                sequences.gaps().flat_map(|(first, last)| first..=last).collect();
            let span = model.first().copied().unwrap_or(0)..model.last().copied().unwrap_or(0);
            let expected: BTreeSet<u64> = span.filter(|number| !model.contains(number)).collect();
            prop_assert_eq!(missing, expected);
            let within: BTreeSet<u64> =
                sequences.within(10, 30).flat_map(|(first, last)| first..=last).collect();
            prop_assert_eq!(within, model.range(10..=30).copied().collect::<BTreeSet<u64>>());
        }
    }

    #[test]
    fn order_keeps_it_at_one_range() {
        let mut sequences = Sequences::default();
        (0..1_000).for_each(|number| sequences.insert(number, number));
        assert_eq!(sequences.ranges(), 1);
        sequences.insert(u64::MAX, u64::MAX);
        assert!(sequences.contains(u64::MAX));
    }
}
