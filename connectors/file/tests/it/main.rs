//! The parts of this crate against real files, each with its feature.
#![cfg(test)]

#[cfg(feature = "follow")]
mod follow;
#[cfg(feature = "lines")]
mod lines;
#[cfg(feature = "segments")]
mod segments;
#[cfg(feature = "spool")]
mod spool;
