//! Whom a writer tells that something changed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Told that something changed. Called from any thread; must not block.
pub trait Notify: Send + Sync {
    /// Something changed.
    fn notify(&self);
}

/// Whom a writer tells that something changed: what `set_notify` of a
/// [`ChunkWriter`](super::ChunkWriter) sets and the writer's threads call.
#[derive(Default)]
pub struct NotifyCell {
    notify: Mutex<Option<Arc<dyn Notify>>>,
    is_unawaited: AtomicBool,
}

impl NotifyCell {
    /// Sets whom to tell; replaces the one before.
    pub fn set(&self, notify: Arc<dyn Notify>) {
        *self.notify.lock().unwrap_or_else(PoisonError::into_inner) = Some(notify);
    }

    /// What `set_awaited` of a [`ChunkWriter`](super::ChunkWriter) says. Who begins to wait is told at
    /// once, since something may be there already.
    pub fn set_awaited(&self, awaited: bool) {
        let was_unawaited = self.is_unawaited.swap(!awaited, Ordering::SeqCst);
        if awaited && was_unawaited {
            self.notify();
        }
    }

    /// Whether anybody waits to be told that the medium took a chunk. To be asked after that was
    /// noted where [`confirmations`](super::ChunkWriter::confirmations) finds it.
    pub fn is_awaited(&self) -> bool {
        !self.is_unawaited.load(Ordering::SeqCst)
    }
}

impl Notify for NotifyCell {
    /// Tells that something changed, if anybody wants to know. No lock is held meanwhile.
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
