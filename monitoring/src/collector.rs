//! The collector: one thread that makes chunks of the records that the application emits.
//!
//! ```text
//! queues -> queue_reader -> rounds -> [batch] -> dispatch -> encoder -> [chunk] -> outbox
//!                                                   |  ^
//!                                     too large: splitting
//! ```
//!
//! The collector waits for deadlines and wake-ups. It polls the queues at least twice in the wait
//! time of a chunk, and at most 64 times. While the outbox is full it takes nothing from the
//! queues. They fill, and their overflow policy applies.
//!
//! The age of a record counts from the last round before it appeared. This may be up to one round
//! too early, but the application's thread reads no clock for it. Forwarded records with old
//! timestamps or none are batched like any other.

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
