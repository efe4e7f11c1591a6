//! The chunks in the results of traces. Some come from saved results.

use std::collections::BTreeMap;

use baler_common::transport::ChunkIdentity;
use serde::{Deserialize, Serialize};

use crate::lanes::{LaneKey, Sequences};

/// The most remembered lanes of producers, and the most ranges of chunks in all of them. Lanes of
/// the lowest producers are forgotten first.
const MAX_LANES: usize = 65_536;
const MAX_RANGES: usize = 1 << 18;

/// The chunks in the results.
#[derive(Debug, Default)]
pub(super) struct SeenChunks {
    lanes: BTreeMap<LaneKey, Sequences>,
    ranges: usize,
}

impl SeenChunks {
    /// Adds the chunks from `first` to the sequence number `last`. Returns how many of them it
    /// already had.
    pub(super) fn insert(&mut self, first: ChunkIdentity, last: u64) -> u64 {
        let key = LaneKey::from(first);
        if self.lanes.len() >= MAX_LANES && !self.lanes.contains_key(&key) {
            if let Some((_, forgotten)) = self.lanes.pop_first() {
                self.ranges -= forgotten.ranges();
            }
        }
        let lane = self.lanes.entry(key).or_default();
        // Only all numbers together are more than 64 bits can count.
        let known = lane.within(first.sequence, last);
        let known = known.fold(0_u64, |sum, (from, to)| {
            (sum + (to - from)).saturating_add(1)
        });
        self.ranges -= lane.ranges();
        lane.insert(first.sequence, last);
        if self.ranges + lane.ranges() > MAX_RANGES {
            lane.forget_lowest();
        }
        self.ranges += lane.ranges();
        known
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = ChunkRange> {
        self.lanes.iter().flat_map(|(key, sequences)| {
            let ranges = sequences.iter();
            ranges.map(|(first, last_sequence)| ChunkRange {
                first: key.chunk(first),
                last_sequence,
            })
        })
    }
}

/// Chunks of one lane that follow each other. In the file: the first one, and the last sequence
/// number.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "(String, u64)", into = "(String, u64)")]
pub(super) struct ChunkRange {
    pub(super) first: ChunkIdentity,
    pub(super) last_sequence: u64,
}

impl TryFrom<(String, u64)> for ChunkRange {
    type Error = String;

    fn try_from((first, last_sequence): (String, u64)) -> Result<Self, String> {
        match first.parse::<ChunkIdentity>() {
            Ok(first) if first.sequence <= last_sequence => Ok(Self {
                first,
                last_sequence,
            }),
            _ => Err(format!("no range of chunks: {first} to {last_sequence}")),
        }
    }
}

impl From<ChunkRange> for (String, u64) {
    fn from(range: ChunkRange) -> Self {
        (range.first.to_string(), range.last_sequence)
    }
}
