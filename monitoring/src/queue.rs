//! Queues of rows between the application's threads and the collector.
//!
//! ```text
//! emit -> [open block] -> QueueSet: [block][block]... -> ThreadQueue::claim -> collector
//!                            one budget of bytes for all threads
//! ```
//!
//! Each thread appends rows to an open block of its own, without a lock and without an atomic
//! read-modify-write. It commits each row with one release store. The thread takes its queue's lock
//! only once a block, to pass on the full block and get another one. The collector reads the
//! committed part of the open block in place. So a thread that keeps emitting is never interrupted,
//! and the rows of a thread that pauses do not wait in its block. At a shutdown another thread
//! closes the queues. It pays for agreeing with the owners on the last row (`barrier`). The
//! collector keeps a block that it has begun to read. Eviction takes only full blocks that it has
//! not begun.

mod barrier;
mod block;
mod block_reader;
mod budget;
mod emit;
mod flat_rows;
mod handover;
mod reentrance;
mod set;
#[cfg(test)]
mod tests;
mod thread_block;
mod thread_queue;

/// The types that queues and aggregation cells take from the standard library, or from loom where
/// models check them.
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
pub(crate) use reentrance::{admit, count as count_reentrant, enter};
pub(crate) use set::QueueSet;
pub(crate) use thread_block::append_call;
#[cfg(unix)]
pub(crate) use thread_block::{disown, forget_block};
pub(crate) use thread_queue::ThreadQueue;
