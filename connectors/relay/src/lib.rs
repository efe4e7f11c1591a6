#![doc = include_str!("../README.md")]

mod identity;
mod relay;

pub use relay::{Ended, Relay, RelayError, RelayReport, RelayStats, Step, Stop, settings};
