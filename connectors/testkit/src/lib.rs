#![doc = include_str!("../README.md")]
// A failed expectation here is a failed test of the connector that uses this crate.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "this library is made of assertions"
)]

mod cases;
#[cfg(feature = "certificates")]
pub mod certificates;
mod chunks;
mod contract;
#[cfg(feature = "faults")]
pub mod faults;
pub mod hostile;
mod memory;
mod pump;
mod schedules;
mod tap;

pub use cases::{closing, failing, reading, writing};
pub use chunks::{ChunkSource, Label, payload, read_label};
pub use contract::{PATIENCE, TestMedium, within, within_patience};
pub use memory::{MemoryLimits, MemoryMedium, MemoryReader, MemoryWriter};
pub use pump::{Notification, Pump};
pub use schedules::{Dice, each_schedule};
pub use tap::{Tap, drive, drive_pair};
