//! The identity of chunks, which lines do not have.

use std::time::SystemTime;

use crate::follow::checksum;
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

/// Returns the identity of the first chunk of an endpoint, in a life that begins now. Lives of one
/// endpoint have the same producer.
pub(crate) fn first_identity(endpoint: &str) -> ChunkIdentity {
    let half = |prefix: &str| u128::from(checksum(format!("{prefix}{endpoint}").as_bytes()));
    let producer = ProducerId::new(half("lines 1 ") << 64 | half("lines 2 "));
    ChunkIdentity::first(producer, Epoch::at(SystemTime::now()), 0)
}
