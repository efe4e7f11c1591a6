//! Calls that record an event at their start and another one at their end.
//!
//! Kieker's probes of the package `flow` do the same: `TraceMetadata` when a trace begins, a
//! `BeforeOperationEvent`, and an `AfterOperationEvent` or `AfterOperationFailedEvent`.

use std::any::Any;
use std::fmt::Display;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::task::Poll;
use std::thread;

use baler_common::record::{Interned, Record};
use baler_connector_kieker::types::AfterOperationFailedEvent;

use super::call::{AsyncCall, AsyncRecord};
use super::published::Published;
use super::record::{no_session, record_trace};
use super::site::Site;
use crate::controller::{self, active_unix_ns};
use crate::queue;
use crate::trace::{self, Entered};

/// The cause of a call that a panic left; the panic's own message follows if it is known.
const PANIC: &str = "panic";

/// The cause of a call whose future was dropped before it was done.
const CANCELLED: &str = "cancelled";

/// Defines types of Kieker with interned strings, which make their records rows of words.
macro_rules! operation_events {
    ($($event:ident($name:literal))*) => { $(
        #[derive(Debug, Record)]
        #[record(name = $name, rename_all = "camelCase")]
        struct $event {
            #[record(unix_nanos)]
            timestamp: i64,
            trace_id: i64,
            order_index: i32,
            operation_signature: Interned,
            class_signature: Interned,
        }
    )* };
}

operation_events! {
    BeforeOperationEvent("kieker.common.record.flow.trace.operation.BeforeOperationEvent")
    AfterOperationEvent("kieker.common.record.flow.trace.operation.AfterOperationEvent")
}

/// A synchronous call that records events; it ends when the guard is dropped.
///
/// As with [`Guard`](crate::Guard), guards of a thread must be dropped in the reverse order in
/// which they were made, and never by another thread. The last event of a call that ended out of
/// order has the order index -1.
#[derive(Debug)]
#[must_use = "the call ends at once unless the guard is kept in a variable, as `let _probe = …`"]
pub struct EventGuard {
    begun: Option<EventCall>,
    _published: Published,
    not_send: PhantomData<*const ()>,
}

/// A call that records events.
#[derive(Debug)]
pub struct EventCall {
    site: &'static Site,
    entered: Entered,
    /// Whether the thread was already unwinding from a panic when the call began.
    was_panicking: bool,
    /// Whether the body of an asynchronous call has returned.
    is_done: bool,
    /// The cause of the failure.
    cause: Option<String>,
}

impl Site {
    /// Begins a call that records events; it ends when the guard is dropped.
    #[inline]
    pub fn enter_events(&'static self) -> EventGuard {
        EventGuard {
            begun: self
                .active()
                .and_then(|_| begin(self, || (trace::enter_events(), ())))
                .map(|(begun, ())| begun),
            // Last, because the first call registers the site.
            _published: Published::begin(self),
            not_send: PhantomData,
        }
    }

    /// Begins an asynchronous call that records events; it ends when the value is dropped.
    #[inline]
    pub fn enter_events_async(&'static self) -> AsyncCall<EventCall> {
        AsyncCall::begin(self, |site| begin(site, trace::enter_events_async))
    }
}

impl EventGuard {
    /// Marks the operation as failed: its last event is an `AfterOperationFailedEvent` with this
    /// cause.
    ///
    /// The text is made at once, unless the call is not recorded; the last one counts.
    pub fn fail(&mut self, cause: impl Display) {
        fail(self.begun.as_mut(), &cause);
    }

    /// Calls [`fail`](Self::fail) if this is an error.
    pub fn look_at<T, E: Display>(&mut self, result: &Result<T, E>) {
        if let Err(error) = result {
            self.fail(error);
        }
    }
}

/// Runs a body whose events the probe records, if there is one. The message of a panic becomes the
/// cause of the failure, and the panic continues.
#[inline]
pub fn run_events<T>(probe: Option<&mut EventGuard>, body: impl FnOnce() -> T) -> T {
    match probe.and_then(|probe| probe.begun.as_mut()) {
        Some(begun) => begun.listen(body),
        None => body(),
    }
}

impl Drop for EventGuard {
    fn drop(&mut self) {
        if let Some(begun) = &mut self.begun {
            begun.leave();
        }
    }
}

impl AsyncCall<EventCall> {
    /// Marks the operation as failed if this is an error.
    pub fn look_at<T, E: Display>(&mut self, result: &Result<T, E>) {
        if let Err(error) = result {
            fail(self.record(), error);
        }
    }
}

impl AsyncRecord for EventCall {
    #[inline]
    fn poll<T>(&mut self, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        let polled = self.listen(poll);
        self.is_done |= polled.is_ready();
        polled
    }

    fn end(&mut self) {
        if !self.is_done && !self.is_panicking() {
            self.cause = Some(CANCELLED.to_owned());
        }
        self.leave();
    }
}

/// Returns the message of a panic, if it is a text.
fn said(payload: &(dyn Any + Send)) -> Option<&str> {
    payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
}

fn fail(begun: Option<&mut EventCall>, cause: &dyn Display) {
    if let Some(begun) = begun {
        begun.cause = Some(cause.to_string());
    }
}

#[inline(never)]
fn begin<T>(site: &'static Site, enter: impl FnOnce() -> (Entered, T)) -> Option<(EventCall, T)> {
    let key = controller::active_key();
    if key == 0 {
        return None;
    }
    let (entered, context) = enter();
    if let Some(origin) = entered.begun {
        record_trace(entered.trace_id, origin, no_session().as_str());
    }
    let begun = EventCall {
        site,
        was_panicking: thread::panicking(),
        is_done: false,
        cause: None,
        entered,
    };
    let timestamp = active_unix_ns(key);
    let event = BeforeOperationEvent {
        timestamp,
        trace_id: begun.entered.trace_id,
        order_index: begun.entered.order,
        operation_signature: site.signature(),
        class_signature: site.class(),
    };
    push(key, timestamp, &event);
    Some((begun, context))
}

/// Passes an event to the queue, which counts dropped ones.
fn push(key: u64, timestamp: i64, event: &impl Record) {
    queue::push_record(key, controller::active_queues, event, timestamp);
}

impl EventCall {
    /// Runs code that may panic, and remembers the panic's message.
    fn listen<T>(&mut self, run: impl FnOnce() -> T) -> T {
        // The panic continues at once, so nothing reads data that it leaves half done.
        match panic::catch_unwind(AssertUnwindSafe(run)) {
            Ok(output) => output,
            Err(payload) => {
                self.cause = Some(match said(&*payload) {
                    Some(said) => format!("{PANIC}: {said}"),
                    None => PANIC.to_owned(),
                });
                // Without the panic hook, which has already run.
                panic::resume_unwind(payload)
            }
        }
    }

    /// Whether a panic is leaving the call.
    fn is_panicking(&self) -> bool {
        !self.was_panicking && thread::panicking()
    }

    /// Ends the call in its trace, and records its last event.
    #[inline(never)]
    fn leave(&mut self) {
        let order_index = trace::leave_events(&mut self.entered);
        let key = controller::active_key();
        if key == 0 {
            return;
        }
        let cause = match self.cause.take() {
            None if self.is_panicking() => Some(PANIC.to_owned()),
            cause => cause,
        };
        let timestamp = active_unix_ns(key);
        let trace_id = self.entered.trace_id;
        let (operation, class) = (self.site.signature(), self.site.class());
        let Some(cause) = cause else {
            let event = AfterOperationEvent {
                timestamp,
                trace_id,
                order_index,
                operation_signature: operation,
                class_signature: class,
            };
            return push(key, timestamp, &event);
        };
        let event = AfterOperationFailedEvent {
            timestamp,
            trace_id,
            order_index,
            operation_signature: operation.as_str().to_owned(),
            class_signature: class.as_str().to_owned(),
            cause,
        };
        push(key, timestamp, &event);
    }
}

#[cfg(test)]
mod tests {
    use baler_connector_kieker::types as kieker;

    use super::*;

    #[test]
    fn types_of_events_are_kiekers() {
        let before = kieker::BeforeOperationEvent::schema();
        assert_eq!(BeforeOperationEvent::schema(), before);
        let after = kieker::AfterOperationEvent::schema();
        assert_eq!(AfterOperationEvent::schema(), after);
    }
}
