//! A barrier between two sides: one passes it very often, the other one once.
//!
//! Each side writes its own word and then reads the other side's word. At least one of them must
//! see the other's write. Without a barrier, a processor may delay the write past the read. A
//! barrier waits until all earlier writes have reached the cache. In `emit` this would take longer
//! than everything else. With `membarrier(2)` the rare side issues the barrier on all processors
//! that run this program, and the frequent side needs none.
//!
//! The names come from folly's `AsymmetricThreadFence`. On systems without this call, both sides
//! pay.

use super::sync::{Ordering, fence};

// Neither loom nor Miri knows the call.
#[cfg(all(target_os = "linux", not(baler_loom), not(miri)))]
mod members {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use rustix::io;
    use rustix::thread::{MembarrierCommand, membarrier};

    /// Whether the rare side issues the barrier for the frequent side.
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

    /// No processor delays a write for this long: it is about a thousand times the usual delay.
    const STORES_VISIBLE_AFTER: Duration = Duration::from_millis(1);

    fn register() -> io::Result<()> {
        membarrier(MembarrierCommand::RegisterPrivateExpedited)
    }

    pub(in super::super) fn prepare() {
        if !IS_REGISTERED.load(Ordering::Relaxed) && register().is_ok() {
            IS_REGISTERED.store(true, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub(super) fn is_registered() -> bool {
        IS_REGISTERED.load(Ordering::Relaxed)
    }

    pub(super) fn all() {
        let ask = || membarrier(MembarrierCommand::PrivateExpedited);
        if !is_registered() || ask().is_ok() {
            return;
        }
        // The child of a fork may not be registered.
        if register().and_then(|()| ask()).is_err() {
            // The program has forbidden itself this call since then.
            IS_REGISTERED.store(false, Ordering::Relaxed);
            std::thread::park_timeout(STORES_VISIBLE_AFTER);
        }
    }
}

#[cfg(not(all(target_os = "linux", not(baler_loom), not(miri))))]
mod members {
    pub(in super::super) fn prepare() {}

    pub(super) fn is_registered() -> bool {
        false
    }

    pub(super) fn all() {}
}

/// Makes the frequent side cheap from now on, if the system supports it.
///
/// This is a system call, which may take some milliseconds in a program with many threads.
pub(super) use members::prepare;

/// The barrier of the frequent side.
#[inline(always)]
pub(super) fn light() {
    if members::is_registered() {
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The barrier of the rare side. It takes some microseconds.
pub(super) fn heavy() {
    fence(Ordering::SeqCst);
    members::all();
    fence(Ordering::SeqCst);
}
