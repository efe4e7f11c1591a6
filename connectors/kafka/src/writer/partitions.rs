//! The partition of each chunk.

use std::collections::HashMap;

use crate::config::{KafkaConfig, PartitionBy};

/// The number of lanes whose partitions are remembered for certain.
const LANES: usize = 32_768;

/// Chooses the partitions of chunks. A lane stays on its first partition, so that partitions which
/// are added later do not change the order of its chunks.
#[derive(Debug)]
pub(super) struct Partitions {
    by: PartitionBy,
    /// Whether the user has set another `partitioner`, which chooses instead.
    is_foreign: bool,
    /// The number of partitions when the writer opened.
    opened: i32,
    /// The chunks so far, for partitions in turn.
    turn: u32,
    /// The partitions of lanes by key. When the first map is full, it becomes the second one.
    recent: HashMap<Box<str>, i32>,
    older: HashMap<Box<str>, i32>,
}

impl Partitions {
    /// Chooses as this configuration says.
    pub(super) fn new(config: &KafkaConfig) -> Self {
        let partitioner = config.client.value("partitioner");
        Self {
            by: config.partition_by,
            is_foreign: partitioner.is_some_and(|name| !name.starts_with("murmur2")),
            opened: 1,
            turn: 0,
            recent: HashMap::new(),
            older: HashMap::new(),
        }
    }

    /// Notes the number of partitions at an opening. A topic that was made anew may have fewer.
    pub(super) fn open(&mut self, count: i32) {
        self.opened = count;
        for lanes in [&mut self.recent, &mut self.older] {
            lanes.retain(|_, partition| *partition < count);
        }
    }

    /// The partition of a chunk with this lane and key, while the topic has `count` partitions.
    /// `None` means that the client chooses.
    pub(super) fn choose(&mut self, lane: u32, key: &str, count: i32) -> Option<i32> {
        match self.by {
            PartitionBy::Producer | PartitionBy::Lane if self.is_foreign => None,
            PartitionBy::Producer | PartitionBy::Lane => Some(self.of_key(key, count)),
            PartitionBy::RoundRobin => {
                self.turn = self.turn.wrapping_add(1);
                Some(remainder(self.turn, count))
            }
            PartitionBy::Trace => Some(remainder(lane, self.opened)),
        }
    }

    /// The partition of a key: its first one, or the one that Kafka's Java client would choose.
    fn of_key(&mut self, key: &str, count: i32) -> i32 {
        if let Some(partition) = self.recent.get(key) {
            return *partition;
        }
        let first = || remainder(murmur2(key.as_bytes()), count);
        let partition = self.older.remove(key).unwrap_or_else(first);
        if self.recent.len() >= LANES {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key.into(), partition);
        partition
    }
}

/// The remainder of the lowest 31 bits of a number by the number of partitions.
fn remainder(number: u32, count: i32) -> i32 {
    let positive = i32::from_ne_bytes((number & 0x7fff_ffff).to_ne_bytes());
    positive % count.max(1)
}

/// MurmurHash2 with the seed of Kafka's `Utils.murmur2`.
fn murmur2(mut bytes: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let [a, b, c, d, ..] = bytes.len().to_le_bytes();
    let mut hash = 0x9747_b28c ^ u32::from_le_bytes([a, b, c, d]);
    while let Some((word, rest)) = bytes.split_first_chunk() {
        let word = u32::from_le_bytes(*word).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (word ^ (word >> 24)).wrapping_mul(M);
        bytes = rest;
    }
    if !bytes.is_empty() {
        let bytes = bytes.iter().rev();
        let word = bytes.fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = (hash ^ word).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests;
