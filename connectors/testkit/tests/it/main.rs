//! The contract holds for the medium in memory, and its fault switches work.

#![cfg(test)]

mod contract;
#[cfg(feature = "faults")]
mod faults;
mod memory;
