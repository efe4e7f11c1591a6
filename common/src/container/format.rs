//! The seams for containers and body formats, including those of other crates.

use std::fmt;
use std::sync::Arc;

use super::decoded::{ChunkSummary, DecodedChunk, Layout};
use super::error::{DecodeError, EncodeError};
use super::header::ChunkHeader;
use super::limits::Limits;
use super::well_known::WellKnownTypes;
use crate::record::{Catalog, RecordBatch};
use crate::transport::ContainerKind;

/// A format of the body of native chunks: the serializer of a batch and its deserializer.
///
/// Prefix, header, compression and checksum stay as the container defines them. So a chunk of any
/// format has an identity and an account of losses, fits every medium, and shows damage.
///
/// # Requirements
///
/// [`deserialize`](Self::deserialize) gets untrusted bytes: it must not panic, and must check
/// lengths against [`Limits`] before it allocates.
///
/// # Design
///
/// A format is a constant of its crate, like a [`Medium`](crate::transport). Both ends name it:
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

    /// Reads a body. Returns the written records in their order.
    ///
    /// # Errors
    ///
    /// The bytes are not a body of this format, or ask for more than the limits.
    fn deserialize(&self, body: &[u8], limits: &Limits) -> Result<RecordBatch, DecodeError>;
}

/// The first number of a body format or compression from another crate. Lower numbers are reserved
/// for Baler.
pub const FIRST_ADDED_NUMBER: u8 = 0x80;

/// Refuses a number that is reserved for Baler's own formats and compressions.
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

    /// Sets the types that chunks name by number, if the container has such numbers.
    fn set_well_known_types(&mut self, types: &'static WellKnownTypes) {
        let _ = types;
    }

    /// Appends one container with the batch's records to `out`; returns its length in bytes.
    ///
    /// Information that the container cannot hold is left out; Kieker's cannot hold the header.
    ///
    /// # Errors
    ///
    /// See [`EncodeError`]; `out` then stays as it was.
    fn serialize(
        &mut self,
        batch: &RecordBatch,
        header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError>;

    /// Returns a deserializer of this container; `None` if it is the native one. A chunk that is too
    /// large for its medium is decoded, and its records are sent in smaller chunks.
    fn deserializer(&self) -> Option<Box<dyn ChunkDeserializer>> {
        None
    }
}

/// Reads the chunks of one container: the counterpart of [`ChunkSerializer`](super::ChunkSerializer).
///
/// # Requirements
///
/// The bytes are untrusted. An implementation must not panic, and must check lengths against
/// [`Limits`] before it allocates. Between chunks it keeps only memory, no state: chunks come in
/// any order.
///
/// # Guarantees
///
/// It returns all records of a chunk in the order in which they were written, or an error.
///
/// # Design
///
/// [`ChunkDecoder`](super::ChunkDecoder) chooses the deserializer by the magic, so one reader takes
/// chunks of any container.
/// [`ChunkDecoder::with_deserializer`](super::ChunkDecoder::with_deserializer) adds a container
/// from another crate.
pub trait ChunkDeserializer: fmt::Debug + Send + Sync {
    /// The first bytes of each chunk of this container.
    fn magic(&self) -> [u8; 4];

    /// Sets the types of records, if the container has no schemas.
    fn set_catalog(&mut self, catalog: &Arc<Catalog>) {
        let _ = catalog;
    }

    /// Reads the information in a chunk without decoding its records.
    ///
    /// # Errors
    ///
    /// The bytes are not a chunk of this container, or ask for more than the limits.
    fn summarize(&self, chunk: &[u8], limits: &Limits) -> Result<ChunkSummary, DecodeError>;

    /// Decodes the records. `layout` is given if the caller wants the sizes of the chunk's parts. A
    /// container without this information leaves it as it is.
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
