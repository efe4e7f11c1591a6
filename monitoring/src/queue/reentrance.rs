//! Records that a thread may not emit. Either it belongs to monitoring ([`suppress`]), or it is in
//! the middle of emitting: a signal handler has interrupted it, or the allocator that it called has
//! probes.
//!
//! The thread has a mark for this ([`Inside`]). It sets the mark before it changes or locks data
//! that an interrupting handler would find half changed or locked. A marked thread appends nothing.
//! Refused records are counted here without a lock and without allocating memory, as a signal
//! handler requires.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use baler_common::number::to_usize;

use super::thread_block;
pub(crate) use super::thread_block::Inside;

/// At most this number of controllers can live at once in a process before two share a counter.
const COUNTS: usize = 256;

/// Counters of refused records. A set of queues uses the counter at its key modulo [`COUNTS`].
static LOST: [AtomicU64; COUNTS] = [const { AtomicU64::new(0) }; COUNTS];

/// Marks the calling thread as inside, so that it may take locks to append to the queues with this
/// key. Returns `None`, and counts a lost record, if the thread may not emit.
pub(crate) fn admit(key: u64) -> Option<Inside> {
    let inside = enter();
    if inside.is_none() {
        count(key);
    }
    inside
}

/// As [`admit`], but counts nothing.
pub(crate) fn enter() -> Option<Inside> {
    if DEPTH.get() > 0 {
        None
    } else {
        Inside::enter()
    }
}

/// Counts a record that the queues with this key refused; 0 stands for no queues.
pub(crate) fn count(key: u64) {
    if key != 0 {
        if let Some(lost) = lost(key) {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns the counter of this key. It includes earlier sets of queues that share the counter.
pub(super) fn counted(key: u64) -> u64 {
    lost(key).map_or(0, |lost| lost.load(Ordering::Relaxed))
}

fn lost(key: u64) -> Option<&'static AtomicU64> {
    LOST.get(to_usize(key % COUNTS as u64))
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Drops and counts all records that this thread emits until the guard is dropped.
///
/// The collector's thread is suppressed, so that a probe in code that delivers records cannot wait
/// for itself or feed itself. Connectors know nothing of probes. If you put probes into the code of
/// a connector's own threads, suppress these threads.
///
/// A signal handler may call this function. It takes no lock and allocates no memory, nor does
/// `emit` until the guard is dropped.
pub fn suppress() -> Suppressed {
    DEPTH.set(DEPTH.get() + 1);
    // Without a block at hand the thread calls `admit` before it emits.
    thread_block::disown();
    Suppressed {
        not_send: PhantomData,
    }
}

/// While this guard lives, its thread emits nothing; see [`suppress`].
#[derive(Debug)]
#[must_use = "emitting goes on as soon as the guard is dropped"]
pub struct Suppressed {
    not_send: PhantomData<*const ()>,
}

impl Drop for Suppressed {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
