//! Baler's own container.

use super::decoder::{ChunkSummary, DecodeContext, DecodedChunk};
use super::error::{DecodeError, DecodeErrorKind, EncodeError};
use super::header::ChunkHeader;
use super::limits::Limits;
use super::serializer::ChunkSerializer;
use crate::record::RecordBatch;
use crate::transport::ContainerKind;

/// Writes Baler's own container.
#[derive(Debug, Default)]
pub struct NativeSerializer {
    compression: super::Compression,
}

impl NativeSerializer {
    /// A serializer that compresses bodies this way.
    ///
    /// # Errors
    ///
    /// [`EncodeError::CompressionMissing`] when the compression was left out of this build.
    pub fn new(compression: super::Compression) -> Result<Self, EncodeError> {
        Ok(Self { compression })
    }
}

impl ChunkSerializer for NativeSerializer {
    fn container(&self) -> ContainerKind {
        ContainerKind::Native
    }

    fn serialize(
        &mut self,
        batch: &RecordBatch,
        _header: &ChunkHeader,
        _out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        Err(EncodeError::TooLarge {
            bytes: batch.len(),
            limit: 0,
        })
    }
}

/// The first bytes of the container.
pub(super) const MAGIC: [u8; 4] = *b"BALR";

/// Memory that a decoder keeps from chunk to chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct DecodeScratch {}

/// Decodes the records; not there yet, so the chunk is refused as unknown.
pub(super) fn decode(
    chunk: &[u8],
    context: &mut DecodeContext<'_>,
) -> Result<DecodedChunk, DecodeError> {
    let _ = (&context.scratch, &context.layout);
    Err(unknown(chunk))
}

/// Says what the chunk is; not there yet, so the chunk is refused as unknown.
pub(super) fn summarize(chunk: &[u8], _limits: &Limits) -> Result<ChunkSummary, DecodeError> {
    Err(unknown(chunk))
}

fn unknown(chunk: &[u8]) -> DecodeError {
    DecodeError {
        offset: 0,
        in_body: false,
        reading: "the magic",
        kind: DecodeErrorKind::UnknownContainer {
            found: chunk.iter().take(4).copied().collect(),
        },
    }
}
