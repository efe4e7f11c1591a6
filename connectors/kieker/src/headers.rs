//! The identity of chunks, which neither streams nor logs of Kieker have.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

/// How many bytes of what cannot be read are kept.
pub(crate) const DAMAGED_BYTES: usize = 64 << 10;

/// The identity of a producer's first chunk, in a life that begins now.
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

/// A producer that nothing else is.
pub(crate) fn random_producer() -> ProducerId {
    ProducerId::new((u128::from(random()) << 64) | u128::from(random()))
}

/// A number that nobody can guess.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}
