#![doc = include_str!("../README.md")]

mod bell;
mod error;
mod identity;
mod relay;
mod settings;
mod stats;

pub use error::{Cause, RelayError, Unfit, without_quarantine};
pub use relay::{Ended, Relay, RelayReport, Step, Stop};
pub use settings::RelaySettings;
pub use stats::RelayStats;
