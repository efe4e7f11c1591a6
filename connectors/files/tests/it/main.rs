//! The parts of this crate from outside, each with its feature.
#![cfg(test)]

#[cfg(feature = "follow")]
mod follow;
