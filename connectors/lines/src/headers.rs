//! The identity of chunks, which lines do not have.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_files::follow::checksum;

/// Returns the identity of the first chunk of an endpoint, in a life that begins now. Lives of one
/// endpoint have the same producer.
pub(crate) fn first_identity(endpoint: &str) -> ChunkIdentity {
    let half = |prefix: &str| u128::from(checksum(format!("{prefix}{endpoint}").as_bytes()));
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let start = since_1970.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
    let [random, ..] = RandomState::new().hash_one(0).to_le_bytes().map(u32::from);
    ChunkIdentity {
        producer: ProducerId::new(half("lines 1 ") << 64 | half("lines 2 ")),
        epoch: Epoch {
            start_unix_ns: start,
            random,
        },
        lane: 0,
        sequence: 0,
    }
}
