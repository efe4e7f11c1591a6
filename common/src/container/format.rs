//! The seams to containers and formats of bodies, also those of other crates.

use std::fmt;

use super::decoder::{ChunkSummary, DecodedChunk, Layout};
use super::error::{DecodeError, EncodeError};
use super::header::ChunkHeader;
use super::limits::Limits;
use crate::record::RecordBatch;
use crate::transport::ContainerKind;

/// A format of the body of native chunks: the serializer of a batch beside its deserializer.
///
/// Prefix, header, compression and checksum stay those of the container. So a chunk of any format
/// has an identity and an account of losses, travels through every medium, and its damage is seen.
///
/// # What the implementer owes
///
/// [`deserialize`](Self::deserialize) gets bytes from elsewhere: it must not panic, and must check
/// lengths against [`Limits`] before it allocates.
///
/// # Why it has this shape
///
/// A format is a constant of its crate, as a [`Medium`](crate::transport) is. Both ends name it:
/// [`NativeSerializer::with_format`](super::NativeSerializer::with_format) and
/// [`ChunkDecoder::with_format`](super::ChunkDecoder::with_format).
pub trait BodyFormat: fmt::Debug + Sync {
    /// The number in the prefix of a chunk, at least [`FIRST_ADDED_NUMBER`]. Writers and readers
    /// agree on it.
    fn number(&self) -> u8;

    /// The name in tables and JSON.
    fn name(&self) -> &'static str;

    /// Appends the body of a batch.
    ///
    /// # Errors
    ///
    /// The format cannot hold the batch.
    fn serialize(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), EncodeError>;

    /// Reads a body: the records that were written, in their order.
    ///
    /// # Errors
    ///
    /// The bytes are not a body of this format, or ask for more than the limits.
    fn deserialize(&self, body: &[u8], limits: &Limits) -> Result<RecordBatch, DecodeError>;
}

/// The first number of a body format or compression from another crate: the numbers below are
/// Baler's own.
pub const FIRST_ADDED_NUMBER: u8 = 0x80;

/// Refuses a number that Baler keeps for its own formats and compressions.
///
/// # Errors
///
/// [`EncodeError::ReservedNumber`].
pub(super) fn check_number(
    what: &'static str,
    name: &'static str,
    number: u8,
) -> Result<(), EncodeError> {
    match number < FIRST_ADDED_NUMBER {
        true => Err(EncodeError::ReservedNumber { what, name, number }),
        false => Ok(()),
    }
}

/// Writes batches as chunks of one container.
pub trait ChunkSerializer: Send {
    /// The container that it writes.
    fn container(&self) -> ContainerKind;

    /// Appends one container with the batch's records to `out`; returns its length in bytes.
    ///
    /// What the container has no room for (Kieker's has none for the header) is left out.
    ///
    /// # Errors
    ///
    /// See [`EncodeError`]; `out` is then as it was before.
    fn serialize(
        &mut self,
        batch: &RecordBatch,
        header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError>;
}

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
