//! Chunks that identify themselves and can be checked byte by byte.

use std::collections::HashMap;

use baler_common::transport::{Chunk, ChunkIdentity, ChunkMeta, ContainerKind, Epoch, ProducerId};
use bytes::Bytes;

/// The identity of a test chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The producer's number.
    pub producer: u64,
    /// The lane.
    pub lane: u32,
    /// The number in the lane, from 0.
    pub sequence: u64,
}

/// The number of payload bytes that hold the label.
const LABEL_BYTES: usize = 20;

/// Makes chunks with rising tickets and, per lane, rising sequence numbers.
///
/// The chunks are of Kieker's kind, which has no room for an identity, so the medium must carry it
/// separately. Their bytes are no valid container, because a connector must not read them.
#[derive(Debug)]
pub struct ChunkSource {
    producer: u64,
    next_ticket: u64,
    next_sequence: HashMap<u32, u64>,
}

impl ChunkSource {
    /// Creates a source of this producer's chunks.
    pub fn new(producer: u64) -> Self {
        Self {
            producer,
            next_ticket: 0,
            next_sequence: HashMap::new(),
        }
    }

    /// Returns the next chunk of a lane, of this size in bytes, but at least the label's 20.
    pub fn next(&mut self, lane: u32, bytes: usize) -> Chunk {
        let sequence = self.next_sequence.entry(lane).or_default();
        let label = Label {
            producer: self.producer,
            lane,
            sequence: *sequence,
        };
        *sequence += 1;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        Chunk {
            ticket,
            meta: meta(label),
            bytes: payload(label, bytes),
        }
    }

    /// Returns the next chunks of lane 0, about 100 bytes each, of different sizes.
    pub fn take(&mut self, chunks: usize) -> Vec<Chunk> {
        (0..chunks)
            .map(|number| self.next(0, 64 + number % 97))
            .collect()
    }
}

/// Returns the metadata of the chunk with this label.
fn meta(label: Label) -> ChunkMeta {
    ChunkMeta {
        container: ContainerKind::Kieker,
        records: 1 + u32::try_from(label.sequence % 100).expect("it is below 100"),
        identity: ChunkIdentity {
            producer: ProducerId::new(u128::from(label.producer)),
            epoch: Epoch {
                start_unix_ns: 1_700_000_000_000_000_000,
                random: 7,
            },
            lane: label.lane,
            sequence: label.sequence,
        },
    }
}

/// Returns the label and bytes that follow from it: `bytes` in all, but at least the label's 20.
pub fn payload(label: Label, bytes: usize) -> Bytes {
    let bytes = bytes.max(LABEL_BYTES);
    let mut payload = Vec::with_capacity(bytes);
    payload.extend_from_slice(&label.producer.to_le_bytes());
    payload.extend_from_slice(&label.lane.to_le_bytes());
    payload.extend_from_slice(&label.sequence.to_le_bytes());
    payload.extend(filler(label).take(bytes - LABEL_BYTES));
    payload.into()
}

/// Returns the label of a payload.
///
/// # Panics
///
/// A byte of the payload was altered.
pub fn read_label(payload: &[u8]) -> Label {
    let parse = || {
        let (producer, rest) = payload.split_first_chunk()?;
        let (lane, rest) = rest.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let label = Label {
            producer: u64::from_le_bytes(*producer),
            lane: u32::from_le_bytes(*lane),
            sequence: u64::from_le_bytes(*sequence),
        };
        Some((label, rest))
    };
    let (label, rest) = parse().expect("a chunk is shorter than its label");
    assert!(
        rest.iter().copied().eq(filler(label).take(rest.len())),
        "the bytes of {label:?} were altered"
    );
    label
}

/// Returns bytes without end that follow from the label (xorshift).
fn filler(label: Label) -> impl Iterator<Item = u8> {
    let mut state = (label.producer << 40) ^ (u64::from(label.lane) << 32) ^ label.sequence;
    state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state.to_le_bytes())
    })
    .flatten()
}

#[cfg(test)]
mod tests;
