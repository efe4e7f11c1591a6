#![doc = include_str!("../README.md")]

pub mod signature;
#[cfg(feature = "sources")]
mod sources;

#[cfg(feature = "sources")]
pub use sources::{Attribute, Change, Function, Problem, State, Tree, remove_all};
