//! Batches to chunks.

use super::error::EncodeError;
use super::header::ChunkHeader;
use crate::record::RecordBatch;
use crate::transport::ContainerKind;

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
