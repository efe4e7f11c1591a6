#![doc = include_str!("../README.md")]

mod attributes;
mod frames;
mod layer;
mod propagation;
mod records;
mod site;
mod span;

pub use layer::{BalerLayer, Lost, layer};
pub use propagation::{traceparent, with_remote_parent};
