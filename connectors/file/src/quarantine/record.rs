//! A chunk in quarantine, as a record.

use bytes::Bytes;

use super::poison::Poison;
use baler_common::container::DecodedChunk;
use baler_common::record::Record;
use baler_common::transport::{ChunkIdentity, Origin};

/// A chunk in quarantine, as a record in a chunk of its own.
///
/// Message headers could carry the origin and the reason beside the bytes. But only some media have
/// headers, and a consumer of the topic would meet the poison message again. This record decodes
/// everywhere, and describes its content.
#[derive(Debug, Clone, PartialEq, Eq, Record)]
#[record(name = "baler.Quarantined")]
pub struct Quarantined {
    /// The reason.
    pub reason: String,
    /// The endpoint of its origin, without credentials.
    pub endpoint: String,
    /// The medium's name of the lane.
    pub lane: String,
    /// The position in the lane.
    pub position: u64,
    /// The chunk's identity, if it is known: producer/epoch/lane/sequence.
    pub identity: Option<String>,
    /// The chunk, byte for byte.
    pub bytes: Bytes,
}

impl Quarantined {
    /// Wraps a poison message.
    pub(super) fn new(poison: Poison<'_>) -> Self {
        Self {
            reason: poison.reason.to_owned(),
            endpoint: poison.origin.endpoint.to_string(),
            lane: poison.origin.lane.to_string(),
            position: poison.origin.position,
            identity: poison.meta.map(|meta| meta.identity.to_string()),
            bytes: Bytes::copy_from_slice(poison.bytes),
        }
    }

    /// Returns the chunk in quarantine, if `chunk` comes from a [`MediumQuarantine`](super::MediumQuarantine): it has
    /// exactly one such record.
    pub fn of(chunk: &DecodedChunk) -> Option<Self> {
        if chunk.batch.len() != 1 {
            return None;
        }
        chunk.batch.read::<Self>().next()?.ok()
    }

    /// Returns the chunk's identity, if it is known.
    pub fn identity(&self) -> Option<ChunkIdentity> {
        self.identity.as_ref()?.parse().ok()
    }

    /// Returns its origin.
    pub fn origin(&self) -> Origin {
        Origin {
            endpoint: self.endpoint.as_str().into(),
            lane: self.lane.as_str().into(),
            position: self.position,
        }
    }
}
