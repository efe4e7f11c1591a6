//! The error of adding a record to a batch.

use crate::record::row::RowEnds;

/// Why a record could not be added. The batch stays as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The row does not follow its schema: a hand-written [`Record`](crate::record::Record) is
    /// wrong.
    #[error("the row does not follow its schema")]
    Malformed,
    /// The batch has no room: 4 GiB of strings or bytes, or 4 billion values.
    #[error("the batch is full")]
    Full,
}

impl From<RowEnds> for PushError {
    fn from(RowEnds: RowEnds) -> Self {
        Self::Malformed
    }
}
