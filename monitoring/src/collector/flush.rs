//! Flushes that wait for the collector.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::queue_reader::QueuePositions;

/// Asks for a flush.
#[derive(Debug)]
pub(crate) struct FlushOrder {
    done: SyncSender<u64>,
    /// Lives as long as the caller waits.
    waiting: Weak<()>,
}

/// Waits for a flush.
#[derive(Debug)]
pub(crate) struct FlushWait {
    end: Receiver<u64>,
    _waiting: Arc<()>,
}

impl FlushOrder {
    /// Returns an order, and the handle to wait for it.
    pub(crate) fn new() -> (Self, FlushWait) {
        let (done, end) = sync_channel(1);
        let waiting = Arc::new(());
        let order = Self {
            done,
            waiting: Arc::downgrade(&waiting),
        };
        let wait = FlushWait {
            end,
            _waiting: waiting,
        };
        (order, wait)
    }

    /// Whether the caller has stopped waiting.
    pub(super) fn is_abandoned(&self) -> bool {
        self.waiting.strong_count() == 0
    }

    /// Ends the flush and reports the number of records that the collector has lost meanwhile.
    pub(super) fn end(&self, lost: u64) {
        // The caller may have stopped waiting.
        self.done.try_send(lost).ok();
    }
}

impl FlushWait {
    /// Waits for at most `timeout`; returns the number of records that the collector has lost
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// The time is over, or the collector has dropped the order.
    pub(crate) fn wait(self, timeout: Duration) -> Result<u64, RecvTimeoutError> {
        self.end.recv_timeout(timeout)
    }
}

/// A flush in progress.
pub(super) struct Flush {
    pub(super) order: FlushOrder,
    pub(super) lost_before: u64,
    pub(super) stage: FlushStage,
}

pub(super) enum FlushStage {
    /// Waits until the queues have passed these positions.
    Draining(QueuePositions),
    /// Waits until every chunk below this ticket has its fate.
    Confirming(u64),
}

#[cfg(test)]
mod tests;
