//! Threads that belong to monitoring and must not monitor themselves.

use std::cell::Cell;
use std::marker::PhantomData;

use super::thread_block;

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
/// A signal handler may call it: it takes no lock and asks for no memory, nor does what is emitted
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

/// Whether this thread is suppressed.
pub(super) fn is_suppressed() -> bool {
    DEPTH.get() > 0
}
