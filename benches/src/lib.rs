#![doc = include_str!("../README.md")]

pub mod codec;
pub mod overhead;
pub mod verdicts;

pub use baler_rig::{Failure, Outcome, exit_code};
