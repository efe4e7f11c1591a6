#![doc = include_str!("../README.md")]
// A failed expectation here is a failed test of the connector that uses this crate.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "this library is made of assertions"
)]

mod cases;
mod chunks;
mod deadline;
pub mod hostile;
mod macros;
mod medium;
mod memory;
mod pump;
mod rabbitmq;
mod schedules;
mod tap;

pub use baler_faults::{RABBITMQ_MAX_MESSAGE_BYTES, TcpProxy};
pub use cases::{closing, failing, reading, writing};
pub use chunks::{ChunkSource, Label, payload, read_label};
pub use deadline::{PATIENCE, within, within_patience};
pub use medium::Medium;
pub use memory::{MemoryLimits, MemoryMedium, MemoryReader, MemoryWriter};
pub use pump::{Notification, Pump};
pub use rabbitmq::RabbitMq;
pub use schedules::{Dice, each_schedule};
pub use tap::{Tap, drive, drive_pair};
