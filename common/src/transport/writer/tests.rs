use std::sync::atomic::AtomicUsize;

use super::*;

/// Counts notifications.
#[derive(Default)]
pub(in crate::transport) struct Counter(AtomicUsize);

impl Counter {
    pub(in crate::transport) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Notify for Counter {
    fn notify(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn an_owner_that_begins_to_wait_is_notified_at_once() {
    let (cell, counter) = (NotifyCell::default(), Arc::<Counter>::default());
    cell.set(counter.clone());
    let state = || (cell.is_awaited(), counter.count());
    cell.set_awaited(true);
    assert_eq!(state(), (true, 0), "it waited before");
    cell.set_awaited(false);
    assert_eq!(state(), (false, 0));
    cell.set_awaited(true);
    assert_eq!(state(), (true, 1));
}
