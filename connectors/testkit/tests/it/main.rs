//! The contract holds for the medium in memory, and its fault switches do what they say.

#![cfg(test)]

mod contract;
mod memory;
