//! Opens the medium's writer on a thread of its own: what goes to disk does not wait for a
//! medium that does not answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkWriter, RetryClass, TransportError, guarded};

use crate::shared::Shared;

/// Starts an attempt; its outcome comes to [`State::opened`](crate::shared::State::opened).
pub(crate) fn open(shared: &Arc<Shared>, inner: Box<dyn ChunkWriter>, timeout: Duration) {
    let medium = inner.capability().medium;
    // Were it moved into the closure, it would be lost with a thread that cannot be started.
    let cell = Arc::new(Mutex::new(Some(inner)));
    let (for_thread, result) = (Arc::clone(&cell), Arc::clone(shared));
    let attempt = move || {
        let Some(mut inner) = take(&for_thread) else {
            return;
        };
        let by = Instant::now() + timeout;
        let opened = guarded("open", medium, || inner.reopen(by)).and_then(|opened| opened);
        result.order(|state| state.opened = Some((inner, opened)));
    };
    let started = thread::Builder::new()
        .name("baler-spool-open".into())
        .spawn(attempt);
    if let Err(error) = started
        && let Some(inner) = take(&cell)
    {
        let error =
            TransportError::caused_by("start a thread for", medium, RetryClass::Retry, error);
        shared.order(|state| state.opened = Some((inner, Err(error))));
    }
}

fn take(cell: &Mutex<Option<Box<dyn ChunkWriter>>>) -> Option<Box<dyn ChunkWriter>> {
    cell.lock().unwrap_or_else(PoisonError::into_inner).take()
}
