//! How a writer wakes its owner.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Wakes the owner of a writer. Called from any thread; must not block.
pub trait Notify: Send + Sync {
    /// Something changed.
    fn notify(&self);
}

/// The [`Notify`] that `set_notify` of a [`ChunkWriter`](super::ChunkWriter) sets and the writer's
/// threads call.
#[derive(Default)]
pub struct NotifyCell {
    notify: Mutex<Option<Arc<dyn Notify>>>,
    is_unawaited: AtomicBool,
}

impl NotifyCell {
    /// Sets what to notify; replaces the one before.
    pub fn set(&self, notify: Arc<dyn Notify>) {
        *self.notify.lock().unwrap_or_else(PoisonError::into_inner) = Some(notify);
    }

    /// Notes what `set_awaited` of a [`ChunkWriter`](super::ChunkWriter) says. An owner that begins
    /// to wait is notified at once, since a confirmation may be there already.
    pub fn set_awaited(&self, awaited: bool) {
        let was_unawaited = self.is_unawaited.swap(!awaited, Ordering::SeqCst);
        if awaited && was_unawaited {
            self.notify();
        }
    }

    /// Whether the owner waits for confirmations. A writer asks this after it has put the
    /// confirmation where [`confirmations`](super::ChunkWriter::confirmations) finds it.
    pub fn is_awaited(&self) -> bool {
        !self.is_unawaited.load(Ordering::SeqCst)
    }
}

impl Notify for NotifyCell {
    /// Wakes the owner, if there is one. No lock is held meanwhile.
    fn notify(&self) {
        let guard = self.notify.lock().unwrap_or_else(PoisonError::into_inner);
        let notify = guard.clone();
        drop(guard);
        if let Some(notify) = notify {
            notify.notify();
        }
    }
}

impl fmt::Debug for NotifyCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NotifyCell")
    }
}

#[cfg(test)]
mod tests;
