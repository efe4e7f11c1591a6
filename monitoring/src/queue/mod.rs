//! Queues between the application's threads and the collector, in plain bytes.
//!
//! ```text
//! thread -> QueueSet::push -> [block][block][open block] -> QueueSet::claim -> collector
//!                              one budget of bytes for all threads
//! ```
//!
//! Each thread appends rows to a block of its own and shares no lock with other threads while it
//! does; a block that is full is passed on, and only then is the collector woken.
//! Everything behind [`QueueSet`] may be replaced without anyone noticing.

mod block;
mod budget;
mod local;
mod overflow;
mod set;
mod suppress;
#[cfg(test)]
mod tests;
mod thread;

pub(crate) use block::{Block, Row};
pub(crate) use local::push;
pub use overflow::Overflow;
pub(crate) use set::QueueSet;
pub use suppress::{Suppressed, suppress};
pub(crate) use thread::ThreadQueue;
