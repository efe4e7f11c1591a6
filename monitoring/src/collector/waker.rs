//! The one wake-up of the collector: full blocks, orders and the writer's confirmations.

use std::sync::OnceLock;
use std::thread::Thread;

use baler_common::transport::Notify;

/// Wakes the collector's thread; it costs a system call only when the thread is parked.
#[derive(Debug, Default)]
pub(crate) struct Waker {
    thread: OnceLock<Thread>,
}

impl Waker {
    /// Says which thread is to be woken; the first call counts.
    pub(super) fn set_thread(&self, thread: Thread) {
        self.thread.get_or_init(|| thread);
    }
}

impl Notify for Waker {
    fn notify(&self) {
        // Before its thread is known the collector has not looked at anything yet.
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}
