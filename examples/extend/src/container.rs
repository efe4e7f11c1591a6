//! A container: the word `LINE`, and lines of JSON. It cannot hold an identity; media carry it
//! beside the container.

use baler::container::{
    ChunkDeserializer, ChunkHeader, ChunkSerializer, ChunkSummary, DecodeError, DecodedChunk,
    EncodeError, Layout, Limits,
};
use baler::record::RecordBatch;
use baler::transport::ContainerKind;

use crate::json_lines::JSON_LINES;

const MAGIC: [u8; 4] = *b"LINE";

/// Writes the container.
#[derive(Debug, Clone, Copy)]
pub struct LinesSerializer;

impl ChunkSerializer for LinesSerializer {
    fn container(&self) -> ContainerKind {
        ContainerKind::Added
    }

    fn serialize(
        &mut self,
        batch: &RecordBatch,
        _header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        match JSON_LINES.serialize(batch, out) {
            Ok(()) => Ok(out.len() - start),
            Err(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }
}

/// Reads the container.
#[derive(Debug, Clone, Copy)]
pub struct LinesDeserializer;

impl ChunkDeserializer for LinesDeserializer {
    fn magic(&self) -> [u8; 4] {
        MAGIC
    }

    fn summarize(&self, chunk: &[u8], _limits: &Limits) -> Result<ChunkSummary, DecodeError> {
        Ok(ChunkSummary::plain(ContainerKind::Added, "lines", chunk))
    }

    fn deserialize(
        &mut self,
        chunk: &[u8],
        limits: &Limits,
        _layout: Option<&mut Layout>,
    ) -> Result<DecodedChunk, DecodeError> {
        let body = chunk.strip_prefix(&MAGIC).unwrap_or_default();
        Ok(DecodedChunk {
            summary: self.summarize(chunk, limits)?,
            batch: JSON_LINES.deserialize(body, limits)?,
        })
    }
}
