#![doc = include_str!("../README.md")]

pub mod brokers;
mod endpoint;
mod failure;
mod mock;
mod numbered;
mod output;
pub mod pipeline;
mod role;
pub mod soak;

pub use failure::Failure;
pub use output::Format;
pub use role::child;
