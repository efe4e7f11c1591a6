#![doc = include_str!("../README.md")]

mod bell;
mod error;
mod identity;
mod relay;
mod settings;
mod stats;
mod unfit;

pub use error::RelayError;
pub use relay::{Ended, Relay, RelayReport, Step, Stop};
pub use settings::RelaySettings;
pub use stats::RelayStats;
pub use unfit::{Cause, Unfit, without_quarantine};
