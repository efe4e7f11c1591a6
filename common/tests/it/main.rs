//! The crate from outside, as applications and consumers use it.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests"
)]

mod arbitrary;
mod derive;
mod derive_errors;
mod evolution;
mod kieker_container;
mod kieker_types;
mod native_roundtrip;
