//! Encodes batches as numbered chunks.
//!
//! Next: `common/src/container/native/serializer.rs` makes the bytes. Then `dispatch` pushes the
//! chunk to the outbox.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, DecodeError, DecodedChunk, EncodeError, Limits,
    Losses, LostChunks, NativeSerializer,
};
use baler_common::record::{Catalog, RecordBatch};
use baler_common::transport::{Chunk, ChunkIdentity, ChunkMeta, ContainerKind};
use baler_connector_kieker::types::WELL_KNOWN_TYPES;
use bytes::Bytes;

/// The number of ranges of lost chunks that a header lists, the newest ones. Adjacent lost chunks
/// share a range. 200 ranges take less than 4 KiB.
const MAX_RANGES: usize = 200;

/// Numbers the chunks of all lanes, and writes each in its container.
///
/// Only a chunk within the limits uses up a number, so that numbers stay dense.
pub(super) struct Encoder {
    serializer: Box<dyn ChunkSerializer>,
    lanes: Vec<LaneNumbering>,
    next_ticket: u64,
    /// The size of the last chunk; the next one will be similar.
    capacity: usize,
}

/// The numbering of a lane's chunks.
struct LaneNumbering {
    /// The identity of the next chunk.
    identity: ChunkIdentity,
    lost_chunks: Vec<LostChunks>,
    /// Whether a chunk that marks the end of the epoch was made.
    has_last: bool,
}

/// Why a batch did not become a chunk.
#[derive(Debug)]
pub(super) enum EncodeProblem {
    /// The chunk would exceed the limit.
    TooLarge {
        bytes: usize,
        limit: usize,
        /// The chunk that is too large, if it was made.
        chunk: Bytes,
    },
    /// The container cannot hold two versions of a type at once.
    Ambiguous { record: Box<str> },
    /// The container cannot hold a field of a type; the message names it.
    Unsupported { record: Box<str>, message: Box<str> },
    /// The serializer failed for another reason.
    Failed(Box<str>),
    /// The serializer panicked.
    Panicked,
}

impl Encoder {
    /// Creates an encoder for `lanes` lanes. The first chunk of the first lane has this identity.
    pub(super) fn new(
        serializer: Box<dyn ChunkSerializer>,
        identity: ChunkIdentity,
        lanes: usize,
    ) -> Self {
        let numbers = |lane| LaneNumbering {
            identity: ChunkIdentity { lane, ..identity },
            lost_chunks: Vec::new(),
            has_last: false,
        };
        Self {
            serializer,
            lanes: (0..).take(lanes.max(1)).map(numbers).collect(),
            next_ticket: 0,
            capacity: 0,
        }
    }

    /// Decodes a chunk of its own, with these types.
    pub(super) fn decode(
        &self,
        chunk: &[u8],
        catalog: &Arc<Catalog>,
    ) -> Result<DecodedChunk, DecodeError> {
        match self.serializer.deserializer() {
            None => ChunkDecoder::default()
                .with_well_known_types(&WELL_KNOWN_TYPES)
                .decode(chunk),
            Some(mut deserializer) => {
                deserializer.set_catalog(catalog);
                deserializer.deserialize(chunk, &Limits::default(), None)
            }
        }
    }

    pub(super) fn container(&self) -> ContainerKind {
        self.serializer.container()
    }

    /// The ticket of the next chunk.
    pub(super) fn next_ticket(&self) -> u64 {
        self.next_ticket
    }

    /// The lanes without a last chunk. Of lanes without any chunk, only the first counts.
    pub(super) fn without_last(&self) -> Vec<usize> {
        let open = |(lane, numbers): &(usize, &LaneNumbering)| {
            !numbers.has_last && (*lane == 0 || numbers.identity.sequence > 0)
        };
        let lanes = self.lanes.iter().enumerate().filter(open);
        lanes.map(|(lane, _)| lane).collect()
    }

    /// The chunk that was marked as its lane's last was not delivered as it was.
    pub(super) fn forget_last(&mut self, identity: &ChunkIdentity) {
        if let Some(numbers) = self.numbers_of(identity) {
            numbers.has_last = false;
        }
    }

    /// Lists this chunk as lost in the next chunks of its lane.
    pub(super) fn list_as_lost(&mut self, identity: &ChunkIdentity) {
        if let Some(numbers) = self.numbers_of(identity) {
            numbers.list_as_lost(identity.sequence);
        }
    }

    fn numbers_of(&mut self, identity: &ChunkIdentity) -> Option<&mut LaneNumbering> {
        let lane = usize::try_from(identity.lane).ok()?;
        self.lanes.get_mut(lane)
    }

    /// Encodes these records as the next chunk of a lane.
    pub(super) fn encode(
        &mut self,
        lane: usize,
        batch: &RecordBatch,
        losses: Losses,
        last_of_epoch: bool,
        limit: usize,
    ) -> Result<Chunk, EncodeProblem> {
        let numbers = self
            .lanes
            .get_mut(lane)
            .ok_or_else(|| EncodeProblem::Failed("the lane is unknown".into()))?;
        let mut header = ChunkHeader::new(numbers.identity);
        header.last_of_epoch = last_of_epoch;
        header.losses = losses;
        header.lost_chunks.clone_from(&numbers.lost_chunks);
        let memory = Vec::with_capacity(self.capacity + self.capacity / 8);
        let bytes = serialize(&mut *self.serializer, batch, &header, memory)?;
        // A chunk counts its records in 32 bits.
        let (true, Ok(records)) = (bytes.len() <= limit, u32::try_from(batch.len())) else {
            return Err(EncodeProblem::TooLarge {
                bytes: bytes.len(),
                limit,
                chunk: bytes.into(),
            });
        };
        self.capacity = bytes.len();
        let chunk = Chunk {
            ticket: self.next_ticket,
            meta: ChunkMeta {
                container: self.serializer.container(),
                records,
                identity: numbers.identity,
            },
            bytes: bytes.into(),
        };
        numbers.identity.sequence += 1;
        numbers.has_last |= last_of_epoch;
        self.next_ticket += 1;
        Ok(chunk)
    }

    /// Encodes the records as a native chunk for later inspection; empty if that fails, too.
    pub(super) fn for_inspection(&self, lane: usize, batch: &RecordBatch) -> Bytes {
        let Some(numbers) = self.lanes.get(lane) else {
            return Bytes::new();
        };
        let header = ChunkHeader::new(numbers.identity);
        let mut native = NativeSerializer::default();
        serialize(&mut native, batch, &header, Vec::new())
            .map_or_else(|_| Bytes::new(), Bytes::from)
    }
}

impl LaneNumbering {
    fn list_as_lost(&mut self, sequence: u64) {
        let at = self
            .lost_chunks
            .partition_point(|range| range.first_sequence <= sequence);
        self.lost_chunks.insert(
            at,
            LostChunks {
                first_sequence: sequence,
                chunks: 1,
            },
        );
        self.lost_chunks.dedup_by(|later, earlier| {
            let adjacent = earlier.first_sequence + earlier.chunks;
            let merge = adjacent == later.first_sequence;
            if merge {
                earlier.chunks += later.chunks;
            }
            merge
        });
        if self.lost_chunks.len() > MAX_RANGES {
            self.lost_chunks.remove(0);
        }
    }
}

fn serialize(
    serializer: &mut dyn ChunkSerializer,
    batch: &RecordBatch,
    header: &ChunkHeader,
    mut out: Vec<u8>,
) -> Result<Vec<u8>, EncodeProblem> {
    // Between chunks a serializer keeps only reusable memory, so a panic leaves nothing half done.
    let result = catch_unwind(AssertUnwindSafe(|| {
        serializer.serialize(batch, header, &mut out)
    }));
    match result {
        Ok(Ok(_)) => Ok(out),
        Ok(Err(EncodeError::TooLarge { bytes, limit })) => Err(EncodeProblem::TooLarge {
            bytes,
            limit,
            chunk: Bytes::new(),
        }),
        Ok(Err(EncodeError::Ambiguous { record, .. })) => Err(EncodeProblem::Ambiguous { record }),
        Ok(Err(error)) => {
            let message = error.to_string().into();
            Err(match error {
                EncodeError::Unsupported { record, .. } => {
                    EncodeProblem::Unsupported { record, message }
                }
                _ => EncodeProblem::Failed(message),
            })
        }
        Err(_) => Err(EncodeProblem::Panicked),
    }
}

#[cfg(test)]
mod tests;
