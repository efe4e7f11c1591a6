//! The state that the collector shares with emitting threads and with callers of the controller.

use std::fmt;
#[cfg(feature = "sampling")]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use std::time::Instant;

use baler_common::mutex::lock;
use baler_common::record::Interned;
use baler_common::transport::Notify;

#[cfg(feature = "samplers")]
use super::event::Event;
use super::flush::FlushOrder;
use super::ledger::Ledger;
use crate::clock::Clock;
use crate::queue::QueueSet;

/// At most this number of notices waits for the collector.
#[cfg(feature = "samplers")]
const MOST_NOTICES: usize = 100;

/// The state that the collector shares with emitting threads and with callers of the controller.
pub(crate) struct ControllerState {
    pub(crate) queues: Arc<QueueSet>,
    pub(crate) ledger: Ledger,
    pub(crate) clock: Clock,
    /// The machine's name, as probes write it.
    pub(crate) hostname: Interned,
    pub(super) waker: Arc<Waker>,
    enabled: AtomicBool,
    orders: Mutex<Orders>,
    /// Events from other threads of monitoring. The collector's thread passes them on.
    #[cfg(feature = "samplers")]
    notices: Mutex<Vec<Event>>,
    /// The CPU time of the collector's thread so far, in nanoseconds.
    #[cfg(feature = "sampling")]
    pub(crate) collector_ns: AtomicU64,
}

/// Requests to the collector.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) flushes: Vec<FlushOrder>,
    pub(super) stop: Option<Instant>,
    /// The collector has ended: nothing reads orders any more.
    ended: bool,
}

impl ControllerState {
    pub(crate) fn new(
        queues: Arc<QueueSet>,
        clock: Clock,
        hostname: Interned,
        waker: Arc<Waker>,
    ) -> Self {
        Self {
            queues,
            ledger: Ledger::default(),
            clock,
            hostname,
            waker,
            enabled: AtomicBool::new(false),
            orders: Mutex::new(Orders::default()),
            #[cfg(feature = "samplers")]
            notices: Mutex::new(Vec::new()),
            #[cfg(feature = "sampling")]
            collector_ns: AtomicU64::new(0),
        }
    }

    /// Whether records are accepted; always `false` in the child of a fork.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed) && !self.is_forked()
    }

    /// Whether this is a forked child of the process that started the collector. A child has no
    /// collector. It must not take a lock of the controller, which a thread of its parent may have
    /// held.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.queues.is_forked()
    }

    /// Starts or stops accepting records; returns whether that changed anything. Records are not
    /// accepted after the end.
    pub(crate) fn set_enabled(&self, enabled: bool) -> bool {
        if self.is_forked() {
            return false;
        }
        let orders = lock(&self.orders);
        let enabled = enabled && orders.stop.is_none() && !orders.ended;
        self.enabled.swap(enabled, Ordering::Relaxed) != enabled
    }

    /// Lets the collector pass an event to the application.
    #[cfg(feature = "samplers")]
    pub(crate) fn post(&self, event: Event) {
        let mut notices = lock(&self.notices);
        // Perhaps no collector is left to take them.
        if notices.len() < MOST_NOTICES {
            notices.push(event);
        }
        drop(notices);
        self.waker.notify();
    }

    /// Takes the events that were posted since the last time.
    #[cfg(feature = "samplers")]
    pub(super) fn take_notices(&self) -> Vec<Event> {
        std::mem::take(&mut lock(&self.notices))
    }

    /// Requests a flush. The order is dropped if the collector has ended.
    pub(crate) fn order_flush(&self, order: FlushOrder) {
        if self.is_forked() {
            return;
        }
        let mut orders = lock(&self.orders);
        if !orders.ended {
            // A writer may keep the collector from reading orders for a long time.
            orders.flushes.retain(|order| !order.is_abandoned());
            orders.flushes.push(order);
        }
        drop(orders);
        self.waker.notify();
    }

    /// Accepts no more records and asks the collector to end until `by`. Of several orders the
    /// earliest time counts.
    pub(crate) fn order_stop(&self, by: Instant) {
        if self.is_forked() {
            return;
        }
        self.enabled.store(false, Ordering::Relaxed);
        // Close first, so that the collector's last round finds everything.
        self.queues.close();
        let mut orders = lock(&self.orders);
        orders.stop = Some(orders.stop.map_or(by, |earlier| earlier.min(by)));
        self.enabled.store(false, Ordering::Relaxed);
        drop(orders);
        self.waker.notify();
    }

    pub(super) fn take_orders(&self) -> (Vec<FlushOrder>, Option<Instant>) {
        let mut orders = lock(&self.orders);
        (std::mem::take(&mut orders.flushes), orders.stop)
    }

    /// The collector has ended: callers must not wait for it.
    pub(super) fn collector_ended(&self) {
        let mut orders = lock(&self.orders);
        orders.ended = true;
        orders.flushes.clear();
        self.enabled.store(false, Ordering::Relaxed);
        drop(orders);
        self.queues.close();
    }
}

impl fmt::Debug for ControllerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerState")
            .field("queues", &self.queues)
            .field("enabled", &self.is_enabled())
            .finish_non_exhaustive()
    }
}

/// Wakes the collector's thread. This costs a system call only when the thread is parked.
#[derive(Debug, Default)]
pub(crate) struct Waker {
    thread: OnceLock<Thread>,
}

impl Waker {
    /// Sets the thread to wake; the first call counts.
    pub(super) fn set_thread(&self, thread: Thread) {
        self.thread.get_or_init(|| thread);
    }
}

impl Notify for Waker {
    fn notify(&self) {
        // Without a known thread, the collector has not read anything yet.
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}
