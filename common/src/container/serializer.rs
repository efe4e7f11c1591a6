//! Batches to chunks.

use super::error::EncodeError;
use super::header::ChunkHeader;
use crate::record::RecordBatch;
use crate::transport::ContainerKind;

/// How much a serializer spends on small chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// As little as possible: for when records come faster than they are written.
    Fast,
    /// What makes chunks small.
    #[default]
    Full,
    /// Beyond that what takes a few bytes off chunks of few records, at up to twice the time: for
    /// when records come so slowly that nobody notices.
    Smallest,
}

/// Writes batches as chunks of one container.
pub trait ChunkSerializer: Send {
    /// The container that it writes.
    fn container(&self) -> ContainerKind;

    /// Says how much the chunks to come are worth; a container that has no choice takes no note.
    fn set_effort(&mut self, effort: Effort) {
        let _ = effort;
    }

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
