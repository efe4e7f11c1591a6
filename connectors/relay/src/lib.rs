#![doc = include_str!("../README.md")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what cannot happen ends the command, and acknowledges nothing"
)]

mod error;
mod identity;
mod relay;

pub use error::RelayError;
pub use relay::{Ended, Relay, RelayReport, RelayStats, Step, Stop, settings};
