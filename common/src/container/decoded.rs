//! The contents of a chunk: its records, and the information outside them.

use super::compression::Compression;
use super::header::ChunkHeader;
use crate::record::RecordBatch;
use crate::transport::{ChunkIdentity, ContainerKind};

/// A decoded chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedChunk {
    /// The information that was read without decoding the records.
    pub summary: ChunkSummary,
    /// The records.
    pub batch: RecordBatch,
}

/// The information in a chunk outside its records.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkSummary {
    /// The container.
    pub container: ContainerKind,
    /// The body's format: `columnar` or the name of an added format, `dflt` in Kieker's container,
    /// or the name that an added container gives.
    pub format: &'static str,
    /// The compression of the body. The level of zstd is not known: it is 0.
    pub compression: Compression,
    /// The chunk's length in bytes.
    pub bytes: usize,
    /// The CRC-32C of the chunk: the one at the end of a native chunk, otherwise the one computed
    /// over all its bytes.
    pub checksum: u32,
    /// The number of records, if the chunk contains it; Kieker's chunks do not.
    pub records: Option<usize>,
    /// The smallest and the largest timestamp, if the chunk contains them and has any.
    pub time_span: Option<(i64, i64)>,
    /// The header of a native chunk.
    pub header: Option<ChunkHeader>,
}

impl ChunkSummary {
    /// Returns the summary of a chunk whose container has no header.
    pub fn plain(container: ContainerKind, format: &'static str, chunk: &[u8]) -> Self {
        Self {
            container,
            format,
            compression: Compression::None,
            bytes: chunk.len(),
            checksum: crc32c::crc32c(chunk),
            records: None,
            time_span: None,
            header: None,
        }
    }

    /// The identity of the chunk, if the container holds it.
    pub fn identity(&self) -> Option<ChunkIdentity> {
        self.header.as_ref().map(|header| header.identity)
    }
}

/// The sizes of a chunk's parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layout {
    /// Header, prefix and checksum, in bytes.
    pub header_bytes: usize,
    /// The body as sent, in bytes.
    pub stored_body_bytes: usize,
    /// The body after decompression, in bytes.
    pub body_bytes: usize,
    /// The schemas, in bytes of the decompressed body.
    pub schema_bytes: usize,
    /// The string table, in bytes of the decompressed body.
    pub string_bytes: usize,
    /// The order of types, in bytes of the decompressed body.
    pub order_bytes: usize,
    /// The columns, in order of types and fields.
    pub columns: Vec<ColumnLayout>,
}

/// The size of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnLayout {
    /// The record type.
    pub record: Box<str>,
    /// The field, or `(timestamp)`.
    pub field: Box<str>,
    /// The encodings used, outermost first: `constant`, `run length`, ...
    pub encoding: Box<str>,
    /// Bytes in the decompressed body.
    pub bytes: usize,
}
