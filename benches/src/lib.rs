#![doc = include_str!("../README.md")]

pub mod codec;
mod endpoint;
mod medium;
mod mock;
mod numbered;
pub mod overhead;
mod role;
pub mod soak;

use baler_rig::{failure, output};

pub use baler_rig::failure::{Failure, exit_code};
pub use baler_rig::output::Format;
pub use medium::Medium;
pub use role::child;
