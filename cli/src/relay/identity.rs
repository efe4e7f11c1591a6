//! Identities of chunks whose medium carries none.

use std::collections::HashMap;
use std::time::SystemTime;

use baler_common::container::{ChunkDecoder, DecodeError, Limits};
use baler_common::transport::{ChunkIdentity, ChunkMeta, Delivery, Epoch, LaneName, ProducerId};

/// The most lanes of the source that get a number of their own; further lanes share one.
const MAX_LANES: usize = 65_536;

/// Finds the identity of a chunk, or makes one.
///
/// A native chunk has its identity in its header. The header has no checksum of its own, so the
/// chunk's checksum is verified, without decompressing or reading the body. Otherwise an identity
/// with a flipped bit would make another chunk a duplicate.
///
/// Kieker's container has no room for an identity. If the medium carries none either, the chunk
/// gets an identity of this relay: a producer and an epoch of this life, a lane for each lane of
/// the source, dense sequence numbers. A chunk that is delivered again gets another identity, so
/// its copies cannot be recognized. The alternative is worse: a position of the source may name
/// another chunk after a restart (as AMQP's delivery tags do). That chunk would count as a copy and
/// be lost.
#[derive(Debug)]
pub(crate) struct Identities {
    decoder: ChunkDecoder,
    producer: ProducerId,
    epoch: Epoch,
    lanes: HashMap<LaneName, Lane>,
    made: u64,
}

#[derive(Debug, Clone, Copy)]
struct Lane {
    number: u32,
    next_sequence: u64,
}

impl Identities {
    /// Starts the identities of this life.
    pub(crate) fn new() -> Self {
        Self {
            decoder: baler::decoder(Limits::default()),
            producer: ProducerId::random(),
            epoch: Epoch::at(SystemTime::now()),
            lanes: HashMap::new(),
            made: 0,
        }
    }

    /// Returns the identity, container and number of records of a chunk.
    ///
    /// # Errors
    ///
    /// The medium carried no metadata, and the bytes are no container or a broken one.
    pub(crate) fn of(&mut self, delivery: &Delivery) -> Result<ChunkMeta, DecodeError> {
        if let Some(meta) = delivery.meta {
            return Ok(meta);
        }
        let summary = self.decoder.summarize(&delivery.bytes)?;
        let known = summary.identity();
        let identity = known.unwrap_or_else(|| self.make(&delivery.origin.lane));
        Ok(ChunkMeta {
            container: summary.container,
            // 0 if the container does not count its records.
            records: summary.records.map_or(0, |count| {
                u32::try_from(count).expect("the head of a chunk counts with 32 bits")
            }),
            identity,
        })
    }

    /// Returns the number of identities that were made.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    fn make(&mut self, lane: &LaneName) -> ChunkIdentity {
        self.made += 1;
        let known = self.lanes.len();
        let number = u32::try_from(known).expect("the number of lanes is bounded");
        // Beyond the bound, lanes share the last one, whose numbers stay dense.
        let shared: LaneName = Box::default();
        let name = if known < MAX_LANES || self.lanes.contains_key(lane) {
            lane
        } else {
            &shared
        };
        let lane = self.lanes.entry(name.clone()).or_insert(Lane {
            number,
            next_sequence: 0,
        });
        let sequence = lane.next_sequence;
        lane.next_sequence += 1;
        ChunkIdentity {
            producer: self.producer,
            epoch: self.epoch,
            lane: lane.number,
            sequence,
        }
    }
}

#[cfg(test)]
mod tests;
