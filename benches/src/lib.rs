#![doc = include_str!("../README.md")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what cannot happen ends the command"
)]

pub mod codec;
pub mod detect;
pub mod overhead;
mod recorded;
pub mod sampling;
pub mod verdicts;

pub use baler_rig::{Failure, Outcome, exit_code};
