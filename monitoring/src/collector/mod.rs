//! The collector: one thread that makes chunks of what the application's threads emit.
//!
//! ```text
//! queues -> drain -> expand -> batch -> (records | bytes | age | flush) -> encode -> [chunk] -> outbox
//! ```
//!
//! It waits for deadlines and wake-ups and never polls faster than its tick.
//! While the outbox is full it drains nothing: the queues fill and their policy rules.
//!
//! The age of a record is counted from the last time its queue was seen without it, which is at
//! most a tick too early: no clock is read for it on the application's thread, and records that
//! are forwarded with times of long ago or none are batched like any other.

mod batch;
mod buffers;
#[cfg(feature = "enable")]
mod calls;
mod dispatch;
mod encoder;
mod event;
mod flush;
mod lanes;
mod ledger;
mod queue_reader;
mod shared;
mod split;
mod stats;
mod tuning;
mod types;
mod waker;
mod work;

pub use batch::ClosedBy;
pub(crate) use event::Hooks;
pub use event::{Event, Quarantined};
pub(crate) use flush::{FlushEnd, FlushOrder};
pub(crate) use shared::Shared;
pub use stats::{ClosedByCounts, ShutdownReport, Stats};
pub use tuning::ChunkCost;
pub(crate) use tuning::Tuning;
pub(crate) use waker::Waker;
pub(crate) use work::{Plan, spawn};
