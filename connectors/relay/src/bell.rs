//! What the sink rings when something changed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baler_common::transport::Notify;

/// A notification that is remembered until it is looked at.
#[derive(Debug, Default)]
pub(crate) struct SinkNotification {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rung: bool,
    /// Waking costs a system call: it is spared where nobody waits.
    waiting: bool,
}

impl SinkNotification {
    /// Whether it was rung since it was last looked at.
    pub(crate) fn take(&self) -> bool {
        std::mem::take(&mut self.lock().rung)
    }

    /// Whether it was rung since it was last taken.
    pub(crate) fn is_rung(&self) -> bool {
        self.lock().rung
    }

    /// Waits until it is rung, or until this time.
    pub(crate) fn wait(&self, until: Instant) {
        let mut state = self.lock();
        while !state.rung {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.waiting = true;
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting = false;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notify for SinkNotification {
    fn notify(&self) {
        let mut state = self.lock();
        state.rung = true;
        let waiting = state.waiting;
        drop(state);
        if waiting {
            self.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn waiting_ends_when_it_is_rung_and_not_before_its_time_otherwise() {
        let bell = Arc::new(SinkNotification::default());
        let soon = Instant::now() + Duration::from_millis(2);
        bell.wait(soon);
        assert!(Instant::now() >= soon && !bell.take());
        let ringer = Arc::clone(&bell);
        let thread = thread::spawn(move || ringer.notify());
        bell.wait(Instant::now() + Duration::from_secs(60));
        assert!(bell.take() && !bell.is_rung());
        thread.join().unwrap();
    }
}
