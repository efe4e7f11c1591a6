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
mod tests;
