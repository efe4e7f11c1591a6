//! The identity of chunks, which Kieker's streams and logs do not have.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

/// The most bytes that are kept of data that cannot be read.
pub(crate) const DAMAGED_BYTES: usize = 64 << 10;

/// Returns the identity of a producer's first chunk, in a life that begins now.
pub(crate) fn first_identity(producer: ProducerId) -> ChunkIdentity {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    ChunkIdentity {
        producer,
        epoch: Epoch {
            start_unix_ns: since_1970
                .map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX)),
            random: u32::try_from(random() >> 32).unwrap_or_default(),
        },
        lane: 0,
        sequence: 0,
    }
}

/// Returns a producer that no other connection or log has.
pub(crate) fn random_producer() -> ProducerId {
    ProducerId::new((u128::from(random()) << 64) | u128::from(random()))
}

/// Returns a number that cannot be guessed.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}
