//! Chunks to batches, one container each.

use std::fmt;

use super::decoder::{ChunkSummary, DecodedChunk, Layout};
use super::error::DecodeError;
use super::limits::Limits;

/// Reads the chunks of one container: the counterpart of [`ChunkSerializer`](super::ChunkSerializer).
///
/// # What the implementer owes
///
/// The bytes come from elsewhere. An implementation must not panic, and must check lengths against
/// [`Limits`] before it allocates. It keeps memory between chunks, never knowledge: chunks come in
/// any order.
///
/// # What the caller is promised
///
/// It returns all records of a chunk in the order in which they were written, or an error.
///
/// # Why it has this shape
///
/// [`ChunkDecoder`](super::ChunkDecoder) chooses the deserializer by the magic, so that one reader
/// takes chunks of any container. [`ChunkDecoder::with_deserializer`](super::ChunkDecoder::with_deserializer)
/// adds one of a container from another crate.
pub trait ChunkDeserializer: fmt::Debug + Send + Sync {
    /// The first bytes of each chunk of this container.
    fn magic(&self) -> [u8; 4];

    /// Reads what a chunk says of itself, without decoding a record.
    ///
    /// # Errors
    ///
    /// The bytes are not a chunk of this container, or ask for more than the limits.
    fn summarize(&self, chunk: &[u8], limits: &Limits) -> Result<ChunkSummary, DecodeError>;

    /// Decodes the records. `layout` is there when the caller asks where the bytes went; a
    /// container that cannot say leaves it as it is.
    ///
    /// # Errors
    ///
    /// As [`summarize`](Self::summarize); no record of a broken chunk is returned.
    fn deserialize(
        &mut self,
        chunk: &[u8],
        limits: &Limits,
        layout: Option<&mut Layout>,
    ) -> Result<DecodedChunk, DecodeError>;
}
