//! What wakes the writer's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use tokio::sync::Notify;

/// Wakes the writer's thread: for what it is asked to do, and for answers while somebody waits for
/// them.
///
/// A wake-up costs as much as the message itself, and the client library has two for each: its frames
/// are sent, and they are answered.
#[derive(Debug, Default)]
pub(super) struct Bell {
    /// Whether somebody waits for answers.
    wanted: AtomicBool,
    work: Notify,
}

impl Bell {
    /// Wakes the thread.
    pub(super) fn ring(&self) {
        self.work.notify_one();
    }

    /// Waits until it is rung, or was since the last time.
    pub(super) async fn rung(&self) {
        self.work.notified().await;
    }

    /// Says whether somebody waits for answers. Who begins to may have missed some: the thread looks.
    pub(super) fn set_wanted(&self, wanted: bool) {
        // Once it is set the thread looks for what is there. An answer is put down before its waker
        // is woken, under a lock that the look takes: it is either seen there, or rings.
        if self.wanted.swap(wanted, Ordering::SeqCst) != wanted && wanted {
            self.ring();
        }
    }

    #[cfg(test)]
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }
}

/// Woken by the client library when something is answered.
impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.wanted.load(Ordering::SeqCst) {
            self.ring();
        }
    }
}
