//! Records that a thread may not emit: because it belongs to monitoring ([`suppress`]), or because it is
//! in the middle of emitting (a signal handler has interrupted it, or the allocator that it has called has
//! probes).
//!
//! The thread has a mark for that ([`Inside`]), which it sets before it touches what it would find
//! half changed or locked, and whoever finds the mark takes nothing.
//! What was not taken is counted here without a lock and without memory, which a signal handler must
//! not ask for.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use super::thread_block;
pub(crate) use super::thread_block::Inside;

/// So many controllers of a process may live at once before two of them count each other's losses.
const COUNTS: usize = 256;

/// Records that were not taken, of the sets of queues with keys of a kind.
static LOST: [AtomicU64; COUNTS] = [const { AtomicU64::new(0) }; COUNTS];

/// The calling thread takes locks from here on, to append to the queues with this key; `None`, and
/// one record more is lost, if it may not.
pub(crate) fn admit(key: u64) -> Option<Inside> {
    let inside = if DEPTH.get() > 0 {
        None
    } else {
        Inside::enter()
    };
    if inside.is_none() {
        count(key);
    }
    inside
}

/// Counts a record of the queues with this key, 0 for none, that was not taken.
pub(crate) fn count(key: u64) {
    if key != 0 {
        if let Some(lost) = lost(key) {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// How many were not taken so far, by these queues and by others of the same count before.
pub(super) fn counted(key: u64) -> u64 {
    lost(key).map_or(0, |lost| lost.load(Ordering::Relaxed))
}

fn lost(key: u64) -> Option<&'static AtomicU64> {
    LOST.get(usize::try_from(key).unwrap_or(0) % COUNTS)
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Drops, and counts, what this thread emits until the guard is dropped.
///
/// The collector's thread is suppressed, so that a probe in code that delivers records cannot wait
/// for itself or feed itself.
/// Connectors know nothing of probes: whoever puts some into the code of a connector's own threads
/// suppresses these.
///
/// A signal handler may call it: it takes no lock and asks for no memory, nor does `emit`
/// until the guard is dropped.
pub fn suppress() -> Suppressed {
    DEPTH.set(DEPTH.get().saturating_add(1));
    // Without a block at hand the thread asks before it emits.
    thread_block::disown();
    Suppressed {
        not_send: PhantomData,
    }
}

/// While it lives, its thread emits nothing; see [`suppress`].
#[derive(Debug)]
#[must_use = "emitting goes on as soon as the guard is dropped"]
pub struct Suppressed {
    not_send: PhantomData<*const ()>,
}

impl Drop for Suppressed {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
    }
}
