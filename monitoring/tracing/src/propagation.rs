//! Traces across processes: W3C Trace Context for the spans of this thread.

use std::cell::Cell;

use baler_monitoring::{TraceContext, TraceParent};

use crate::frames;

thread_local! {
    /// The parent of the next span.
    static REMOTE: Cell<Option<TraceParent>> = const { Cell::new(None) };
}

/// Returns the header `traceparent` for a request that the current span makes. Outside of all
/// spans it is the header of the current trace of probes, if there is one.
///
/// ```
/// let header = baler_tracing::traceparent().map(|it| it.to_string());
/// ```
///
/// Send [`TraceParent::state`] as a member of `tracestate`, too. Then a process with Baler knows
/// the calling span exactly.
pub fn traceparent() -> Option<TraceParent> {
    let here = TraceContext::current();
    let span = frames::traceparent();
    // Code within the span may have attached the context of another trace.
    let span = span.filter(|span| here.trace_id() == Some(span.kieker_trace_id()));
    span.or_else(|| here.traceparent())
}

/// Makes a span whose parent is in another process: the first span that `make` creates continues
/// the trace of the header `traceparent`. Without a header it only calls `make`.
///
/// ```
/// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let span = baler_tracing::with_remote_parent(header.parse().ok(), || {
///     tracing::info_span!("request", path = "/orders")
/// });
/// ```
///
/// The parent must be known when the span is created, because its first record has it.
pub fn with_remote_parent<T>(parent: Option<TraceParent>, make: impl FnOnce() -> T) -> T {
    let _reset = Reset(REMOTE.replace(parent));
    make()
}

/// Returns the remote parent of the span that is being created, once.
pub(crate) fn take_remote_parent() -> Option<TraceParent> {
    REMOTE.take()
}

/// Sets the former value again, also after a panic.
struct Reset(Option<TraceParent>);

impl Drop for Reset {
    fn drop(&mut self) {
        REMOTE.set(self.0.take());
    }
}
