//! What does not decode is put aside with its bytes, its coordinates and the reason.
//!
//! [`MediumQuarantine`] keeps it in a topic, a queue or whatever else has a writer; the file connector
//! has a quarantine that is a folder.
//! [`Attempts`] finds the chunks that crash their consumer.

mod attempts;
mod medium;

use std::io;

use baler_common::container::DecodedChunk;
use baler_common::record::Record;
use baler_common::transport::{ChunkIdentity, Origin};
use bytes::Bytes;

pub use baler_common::transport::{Poison, Quarantine};

pub use attempts::Attempts;
pub(crate) use attempts::ChunkInWork;
pub use medium::MediumQuarantine;

/// Keeps nothing: the source counts what it rejects, the bytes are gone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl Quarantine for Discard {
    fn put_aside(&mut self, _poison: Poison<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// A chunk that was put aside, as a record in a chunk of its own.
///
/// Message headers could carry coordinates and reason beside the bytes, but only some media have
/// them, and a consumer of the topic would meet the poison again: this record decodes everywhere,
/// and says what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Record)]
#[record(name = "baler.Quarantined")]
pub struct Quarantined {
    /// What is wrong with the chunk.
    pub reason: String,
    /// Where it was: the endpoint, without credentials.
    pub endpoint: String,
    /// The medium's name of the lane.
    pub lane: String,
    /// The position in the lane.
    pub position: u64,
    /// Who the chunk is, if that is known: producer/epoch/lane/sequence.
    pub identity: Option<String>,
    /// The chunk, byte for byte.
    pub bytes: Bytes,
}

impl Quarantined {
    /// A chunk that is put aside.
    fn new(poison: Poison<'_>) -> Self {
        Self {
            reason: poison.reason.to_owned(),
            endpoint: poison.origin.endpoint.to_string(),
            lane: poison.origin.lane.to_string(),
            position: poison.origin.position,
            identity: poison.meta.map(|meta| meta.identity.to_string()),
            bytes: Bytes::copy_from_slice(poison.bytes),
        }
    }

    /// The chunk that is in quarantine here, if this is a chunk of a [`MediumQuarantine`]: exactly
    /// one such record.
    pub fn of(chunk: &DecodedChunk) -> Option<Self> {
        if chunk.batch.len() != 1 {
            return None;
        }
        chunk.batch.read::<Self>().next()?.ok()
    }

    /// Who the chunk is, if that is known.
    pub fn identity(&self) -> Option<ChunkIdentity> {
        self.identity.as_ref()?.parse().ok()
    }

    /// Where it was.
    pub fn origin(&self) -> Origin {
        Origin {
            endpoint: self.endpoint.as_str().into(),
            lane: self.lane.as_str().into(),
            position: self.position,
        }
    }
}
