#![doc = include_str!("../README.md")]

pub mod brokers;
mod endpoint;
mod failure;
mod medium;
mod mock;
mod numbered;
mod output;
pub mod pipeline;
pub mod restarts;
mod role;
pub mod scaling;
pub mod soak;

pub use failure::Failure;
pub use medium::Medium;
pub use output::Format;
pub use role::child;
