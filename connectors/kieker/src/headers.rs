//! What Kieker's streams and logs do not have: the identity of chunks, and a limit for damage.

use std::time::SystemTime;

use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

/// The most bytes that are kept of data that cannot be read.
pub(crate) const DAMAGED_BYTES: usize = 64 << 10;

/// Returns the identity of a producer's first chunk, in a life that begins now.
pub(crate) fn first_identity(producer: ProducerId) -> ChunkIdentity {
    ChunkIdentity::first(producer, Epoch::at(SystemTime::now()), 0)
}
