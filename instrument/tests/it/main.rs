//! Inserts probes into small trees, and removes them again.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod changes;
mod properties;
mod signatures;
mod skipped;
mod tree;
