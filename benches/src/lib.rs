#![doc = include_str!("../README.md")]

pub mod codec;
pub mod overhead;

pub use baler_rig::{Failure, Outcome, exit_code};
