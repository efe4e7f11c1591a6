//! The chunks that are in saved results.

use std::collections::BTreeMap;

use baler_common::transport::ChunkIdentity;

use crate::lanes::LaneKey;
use crate::lanes::sequences::Sequences;

/// How many lanes of producers are remembered, those of the lowest producers are forgotten first; and
/// how many ranges of chunks they have together.
const MAX_LANES: usize = 65_536;
const MAX_RANGES: usize = 1 << 18;

/// The chunks that are in the results.
#[derive(Debug, Default)]
pub(super) struct SeenChunks {
    lanes: BTreeMap<LaneKey, Sequences>,
    ranges: usize,
}

impl SeenChunks {
    /// Adds the chunks from this one to that sequence number; how many of them it had.
    pub(super) fn insert(&mut self, first: ChunkIdentity, last: u64) -> u64 {
        let key = LaneKey::from(first);
        if self.lanes.len() >= MAX_LANES && !self.lanes.contains_key(&key) {
            let forgotten = self.lanes.pop_first();
            let ranges = forgotten.map_or(0, |(_, lane)| lane.ranges());
            self.ranges = self.ranges.saturating_sub(ranges);
        }
        let lane = self.lanes.entry(key).or_default();
        let known = lane.within(first.sequence, last);
        let known = known.fold(0_u64, |sum, (from, to)| {
            sum.saturating_add(to.saturating_sub(from))
                .saturating_add(1)
        });
        let before = lane.ranges();
        lane.insert(first.sequence, last);
        self.ranges = self
            .ranges
            .saturating_sub(before)
            .saturating_add(lane.ranges());
        if self.ranges > MAX_RANGES && lane.forget_lowest().is_some() {
            self.ranges = self.ranges.saturating_sub(1);
        }
        known
    }

    /// The first chunk of each range, as text, and its last sequence number.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (String, u64)> {
        self.lanes.iter().flat_map(|(key, sequences)| {
            sequences.iter().map(|(sequence, last)| {
                let first = ChunkIdentity {
                    producer: key.producer,
                    epoch: key.epoch,
                    lane: key.lane,
                    sequence,
                };
                (first.to_string(), last)
            })
        })
    }
}
