//! Whom a writer tells that something changed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Told that something changed. Called from any thread; must not block.
pub trait Notify: Send + Sync {
    /// Something changed.
    fn notify(&self);
}

/// Whom a writer tells that something changed: what `set_notify` of a
/// [`ChunkWriter`](super::ChunkWriter) sets and the writer's threads call.
#[derive(Default)]
pub struct NotifyCell(Mutex<Option<Arc<dyn Notify>>>);

impl NotifyCell {
    /// Sets whom to tell; replaces the one before.
    pub fn set(&self, notify: Arc<dyn Notify>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(notify);
    }
}

impl Notify for NotifyCell {
    /// Tells that something changed, if anybody wants to know. No lock is held meanwhile.
    fn notify(&self) {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
