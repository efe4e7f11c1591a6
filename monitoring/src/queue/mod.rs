//! Queues of rows between the application's threads and the collector.
//!
//! ```text
//! emit -> [open block] -> QueueSet: [block][block]... -> ThreadQueue::claim -> collector
//!                            one budget of bytes for all threads
//! ```
//!
//! Each thread appends rows to an open block of its own, without a lock and without an atomic
//! read-modify-write, and commits each by one release store.
//! Only once a block it takes its queue's lock, to hand the full block over and to get another one.
//! The collector reads the open block in place as far as it is committed, so nothing has to be
//! taken from a thread that goes on, and nothing waits in the block of one that does not.
//! At a shutdown the queues are closed by another thread, which pays for agreeing with the owners on
//! the last row (`barrier`).
//! What the collector has begun to read is its own; eviction takes full blocks that are not.

mod barrier;
mod block;
mod block_reader;
mod budget;
mod emit;
mod flat_rows;
mod reentrance;
mod set;
#[cfg(test)]
mod tests;
mod thread_block;
mod thread_queue;

/// What the queues and the cells of aggregations take from the standard library, or from loom where
/// their models check them.
pub(crate) mod sync {
    #[cfg(not(all(test, baler_loom)))]
    pub(crate) use std::sync::atomic::AtomicU32;
    #[cfg(not(all(test, baler_loom)))]
    pub(crate) use std::sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    };

    #[cfg(all(test, baler_loom))]
    pub(crate) use loom::sync::atomic::AtomicU32;
    #[cfg(all(test, baler_loom))]
    pub(crate) use loom::sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    };
}

pub(crate) use block::QueueRow;
pub(crate) use block::{CALL_WORDS, KIND, KIND_CALL, KIND_DURATION};
pub(crate) use block_reader::BlockReader;
pub use budget::Overflow;
pub(crate) use emit::push_call;
pub(crate) use emit::{push, push_record};
pub(crate) use flat_rows::MAX_ROWS;
pub(crate) use reentrance::Inside;
pub use reentrance::{Suppressed, suppress};
pub(crate) use reentrance::{admit, count as count_reentrant};
pub(crate) use set::QueueSet;
pub(crate) use thread_block::append_call;
#[cfg(unix)]
pub(crate) use thread_block::{disown, forget_block};
pub(crate) use thread_queue::ThreadQueue;
