//! Kieker's container, KIKA/DFLT.

use super::decoder::{ChunkSummary, DecodedChunk};
use super::error::{DecodeError, DecodeErrorKind, EncodeError};
use super::header::ChunkHeader;
use super::limits::Limits;
use super::serializer::ChunkSerializer;
use crate::record::{Catalog, RecordBatch};
use crate::transport::ContainerKind;

/// Writes Kieker's container, KIKA/DFLT.
#[derive(Debug, Default)]
pub struct KiekerSerializer {}

impl ChunkSerializer for KiekerSerializer {
    fn container(&self) -> ContainerKind {
        ContainerKind::Kieker
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
pub(super) const MAGIC: [u8; 4] = *b"KIKA";

/// Decodes the records; not there yet, so the chunk is refused as unknown.
pub(super) fn decode(
    chunk: &[u8],
    _limits: &Limits,
    _catalog: &Catalog,
) -> Result<DecodedChunk, DecodeError> {
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
