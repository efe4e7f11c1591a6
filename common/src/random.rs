//! Random numbers for identities and retries, not for secrets.

use std::hash::{BuildHasher as _, RandomState};

/// Returns random bits: the standard library seeds its hash maps from the operating system. The child
/// of a fork inherits the seed; the number of its process distinguishes the two.
pub fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Returns a random number of 32 bits.
pub fn random_u32() -> u32 {
    let [a, b, c, d, ..] = random().to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
