//! Baler's own container.

use super::error::EncodeError;
use super::header::ChunkHeader;
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
