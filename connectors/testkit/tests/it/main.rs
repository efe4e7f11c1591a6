//! The contract holds for the medium in memory, and its fault switches work.

#![cfg(test)]

mod contract;
mod memory;
