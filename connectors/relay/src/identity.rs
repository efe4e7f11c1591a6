//! Identities of chunks whose medium carries none.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::{SystemTime, UNIX_EPOCH};

use baler_common::container::{ChunkDecoder, DecodeError};
use baler_common::transport::{ChunkIdentity, ChunkMeta, Delivery, Epoch, LaneName, ProducerId};

/// The most lanes of the source that get a number of their own; further lanes share one.
const MAX_LANES: usize = 65_536;

/// Finds the identity of a chunk, or makes one.
///
/// A native chunk has it in its header.
/// The header has no checksum of its own, so that of the chunk is verified, without decompressing
/// or reading the body: an identity with a flipped bit would make another chunk a duplicate.
///
/// Kieker's container has no room for an identity.
/// Such a chunk, from a medium that carries none either, becomes one of this relay's own: a
/// producer and an epoch of this life, a lane for each lane of the source, dense sequence numbers.
/// One that is delivered again gets another identity, so that its copies cannot be told apart; that
/// is the lesser evil, because a position of the source used as a number may name another chunk
/// after a restart (delivery tags of AMQP do), which would then be taken for a copy and lost.
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
    /// Identities of this life.
    pub(crate) fn new() -> Self {
        let random = RandomState::new();
        let halves = [
            random.hash_one("first half"),
            random.hash_one("second half"),
        ];
        let [first, second] = halves.map(u128::from);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let start = since_1970.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
        let random = random.hash_one("epoch") >> 32;
        Self {
            decoder: ChunkDecoder::default(),
            producer: ProducerId::new((first << 64) | second),
            epoch: Epoch {
                start_unix_ns: start,
                random: u32::try_from(random).unwrap_or_default(),
            },
            lanes: HashMap::new(),
            made: 0,
        }
    }

    /// Returns the identity, container and number of records of a chunk.
    ///
    /// # Errors
    ///
    /// The medium carried nothing beside it, and its bytes are no container or a broken one.
    pub(crate) fn of(&mut self, delivery: &Delivery) -> Result<ChunkMeta, DecodeError> {
        if let Some(meta) = delivery.meta {
            return Ok(meta);
        }
        let summary = self.decoder.summarize(&delivery.bytes)?;
        let records = summary.records.unwrap_or(0);
        let known = summary.identity();
        let identity = known.unwrap_or_else(|| self.make(&delivery.origin.lane));
        Ok(ChunkMeta {
            container: summary.container,
            records: u32::try_from(records).unwrap_or(u32::MAX),
            identity,
        })
    }

    /// How many identities were made.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    fn make(&mut self, lane: &LaneName) -> ChunkIdentity {
        self.made = self.made.saturating_add(1);
        let known = self.lanes.len();
        let number = u32::try_from(known).unwrap_or(u32::MAX);
        // Beyond the bound lanes share the last one, whose numbers stay dense.
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
        lane.next_sequence = sequence.saturating_add(1);
        ChunkIdentity {
            producer: self.producer,
            epoch: self.epoch,
            lane: lane.number,
            sequence,
        }
    }
}

#[cfg(test)]
mod tests {
    use baler_common::container::{
        ChunkHeader, ChunkSerializer, Compression, KiekerSerializer, NativeSerializer,
    };
    use baler_common::record::RecordBatch;
    use baler_common::transport::{ContainerKind, Origin, Token};

    use super::*;

    fn delivery(lane: &str, bytes: Vec<u8>) -> Delivery {
        Delivery {
            token: Token(0),
            bytes: bytes.into(),
            meta: None,
            origin: Origin {
                endpoint: "somewhere".into(),
                lane: lane.into(),
                position: 0,
            },
            redelivered: false,
            attempts: 0,
        }
    }

    fn chunk(serializer: &mut dyn ChunkSerializer) -> (ChunkIdentity, Vec<u8>) {
        let identity = ChunkIdentity {
            producer: ProducerId::new(7),
            epoch: Epoch {
                start_unix_ns: 1,
                random: 2,
            },
            lane: 3,
            sequence: 4,
        };
        let mut bytes = Vec::new();
        let header = ChunkHeader::new(identity);
        serializer
            .serialize(&RecordBatch::default(), &header, &mut bytes)
            .unwrap();
        (identity, bytes)
    }

    #[test]
    fn native_chunks_say_it_themselves_unless_a_bit_is_flipped() {
        let mut identities = Identities::new();
        let (identity, mut bytes) = chunk(&mut NativeSerializer::new(Compression::None).unwrap());
        let meta = identities.of(&delivery("a", bytes.clone())).unwrap();
        assert_eq!(
            (meta.identity, meta.container),
            (identity, ContainerKind::Native)
        );
        assert_eq!(identities.made(), 0);
        bytes[22] ^= 1;
        assert!(identities.of(&delivery("a", bytes)).is_err());
    }

    #[test]
    fn chunks_without_an_identity_get_one_by_lane_with_dense_numbers() {
        let mut identities = Identities::new();
        let (_, bytes) = chunk(&mut KiekerSerializer::default());
        let mut numbers = |lane| {
            let meta = identities.of(&delivery(lane, bytes.clone())).unwrap();
            assert_eq!(meta.container, ContainerKind::Kieker);
            (meta.identity.lane, meta.identity.sequence)
        };
        assert_eq!(
            [numbers("a"), numbers("b"), numbers("a")],
            [(0, 0), (1, 0), (0, 1)]
        );
        assert_eq!(identities.made(), 3);
        let other = Identities::new();
        assert_ne!(identities.producer, other.producer);
    }
}
