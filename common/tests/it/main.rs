//! The crate from outside, as applications and consumers use it.
//!
//! Golden chunks of every compression need all features.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests"
)]

mod additions;
mod arbitrary;
mod body_formats;
mod corpus;
mod derive;
#[cfg(feature = "zstd")]
mod dictionaries;
mod evolution;
#[cfg(all(feature = "lz4", feature = "zstd"))]
mod format_decoder;
mod format_document;
mod fuzz_bodies;
#[cfg(feature = "irl")]
mod irl_bodies;
mod native_calls;
mod native_chunks;
mod native_corruption;
#[cfg(all(feature = "lz4", feature = "zstd"))]
mod native_golden;
mod native_hostile;
mod native_roundtrip;
mod native_shuffle;
#[cfg(feature = "serde")]
mod serde_bridge;
#[cfg(feature = "serde")]
mod serde_opaque;
