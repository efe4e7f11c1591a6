#![doc = include_str!("../README.md")]

pub mod brokers;
mod failure;
mod output;
pub mod pipeline;

pub use failure::Failure;
pub use output::Format;
