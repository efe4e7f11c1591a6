//! The collector: one thread that makes chunks of what the application's threads emit.
//!
//! ```text
//! queues -> queue_reader -> rounds -> [batch] -> dispatch -> encoder -> [chunk] -> outbox
//!                                                   |  ^
//!                                     too large: splitting
//! ```
//!
//! It waits for deadlines and wake-ups. It looks for records at least twice in the wait time of a
//! chunk, and at most each 64th of it.
//! While the outbox is full it drains nothing: the queues fill and their policy rules.
//!
//! The age of a record counts from the last round before it appeared, which may be one round too
//! early: no clock is read for it on the application's thread, and records that
//! are forwarded with times of long ago or none are batched like any other.

mod calls;
mod closing;
mod controller_state;
mod dispatch;
mod encoder;
mod event;
mod flush;
mod lanes;
mod ledger;
mod queue_reader;
mod rounds;
mod splitting;
mod stats;
mod thread;
mod tuning;

pub use closing::ClosedBy;
pub(crate) use controller_state::{ControllerState, Waker};
pub(crate) use event::Hooks;
pub use event::{Event, Quarantined};
pub(crate) use flush::FlushOrder;
pub use stats::{ClosedByCounts, ShutdownReport, Stats};
pub(crate) use thread::{CollectorConfig, spawn};
pub(crate) use tuning::Tuning;
