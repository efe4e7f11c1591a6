#![doc = include_str!("../README.md")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what cannot happen ends the command"
)]

pub mod codec;
pub mod detect;
mod output;
pub mod overhead;
#[path = "../../cli/src/random.rs"]
#[expect(
    dead_code,
    reason = "the demo's shop needs less of it than the program"
)]
mod random;
mod recorded;
pub mod sampling;
pub mod verdicts;

pub use baler_rig::{Failure, Outcome, exit_code};
