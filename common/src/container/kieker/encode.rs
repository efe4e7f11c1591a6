//! Batches to KIKA/DFLT.

use super::record_encoder::{RecordEncoder, RecordOptions, to_u32};
use super::{FORMAT, HEAD_BYTES, MAGIC};
use crate::container::error::EncodeError;
use crate::container::header::ChunkHeader;
use crate::container::num::to_u64;
use crate::container::serializer::ChunkSerializer;
use crate::container::varint;
use crate::record::RecordBatch;
use crate::transport::ContainerKind;

/// Writes Kieker's container, KIKA/DFLT.
///
/// The header is left out: the container has no room for it.
/// Batches with fields that Kieker's classes cannot have (unsigned integers, bytes, optionals,
/// nested records, lists of lists, chars beyond 16 bits) are refused with
/// [`EncodeError::Unsupported`], those with two versions of one type with
/// [`EncodeError::Ambiguous`].
#[derive(Debug, Default)]
pub struct KiekerSerializer {
    records: RecordEncoder,
}

impl KiekerSerializer {
    /// A serializer that has written nothing yet; memory is kept from chunk to chunk.
    pub fn new() -> Self {
        Self::default()
    }

    fn write(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT);
        self.records.write(batch, &RecordOptions::default(), out)?;
        let record_bytes = out.len().saturating_sub(start).saturating_sub(HEAD_BYTES);
        let strings = self.records.new_strings(batch);
        varint::write(out, to_u64(strings.len()));
        for text in strings {
            varint::write(out, to_u64(text.len()));
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(&to_u32(record_bytes)?.to_be_bytes());
        to_u32(out.len().saturating_sub(start)).map(drop)
    }
}

impl ChunkSerializer for KiekerSerializer {
    fn container(&self) -> ContainerKind {
        ContainerKind::Kieker
    }

    fn serialize(
        &mut self,
        batch: &RecordBatch,
        _header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let start = out.len();
        let written = self.write(batch, out);
        let bytes = out.len().saturating_sub(start);
        if written.is_err() {
            out.truncate(start);
        }
        written.map(|()| bytes)
    }
}
