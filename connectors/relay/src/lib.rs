#![doc = include_str!("../README.md")]

mod identity;
mod relay;
mod stats;

pub use relay::{Ended, Relay, RelayReport, Step, Stop, settings};
pub use stats::{RelayError, RelayStats};
