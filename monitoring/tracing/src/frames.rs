//! The spans that a thread is in. Each one brought its trace context to the thread.
//!
//! The thread also keeps the span that it made or left last. Usually it is the span that it enters
//! or closes next, so most calls of `tracing` need no look-up in the registry.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use baler_monitoring::{Attached, TraceParent};

use crate::span::{SpanData, SpanKey};

thread_local! {
    static SPANS: RefCell<Spans> = const { RefCell::new(Spans { entered: Vec::new(), last: None }) };
}

/// The spans of a thread.
struct Spans {
    /// The innermost one is the last.
    entered: Vec<Frame>,
    last: Option<Arc<SpanData>>,
}

/// A span that the thread has entered and not left.
struct Frame {
    span: Arc<SpanData>,
    /// The time at which the thread entered it.
    entered: i64,
    /// `None` if the thread was in the span already.
    attached: Option<Attached>,
}

/// Keeps a span that the thread has made.
pub(crate) fn keep(span: Arc<SpanData>) {
    change(|spans| spans.last = Some(span));
}

/// Returns a span if it is the innermost one of the thread.
pub(crate) fn innermost(key: SpanKey) -> Option<Arc<SpanData>> {
    let innermost = change(|spans| Some(Arc::clone(&spans.entered.last()?.span)));
    innermost.flatten().filter(|span| span.is(key))
}

/// Returns a span that closes, if the thread made or left it last.
pub(crate) fn take(key: SpanKey) -> Option<Arc<SpanData>> {
    change(|spans| spans.last.take_if(|last| last.is(key))).flatten()
}

/// Enters a span, and makes its context the thread's. Does nothing if the layer does not record the
/// span, or if the thread is about to end.
pub(crate) fn enter(
    key: SpanKey,
    look_up: impl FnOnce() -> Option<Arc<SpanData>>,
    clock: impl FnOnce() -> i64,
) {
    change(|spans| {
        let last = spans.last.take_if(|last| last.is(key));
        let span = last.or_else(look_up)?;
        let is_known = spans.entered.iter().any(|frame| frame.span.is(key));
        let attached = (!is_known).then(|| span.call.within().attach());
        spans.entered.push(Frame {
            span,
            attached,
            // Last, so that the span's time does not contain the layer's.
            entered: clock(),
        });
        Some(())
    });
}

/// Leaves a span at this time, and takes its context from the thread, unless the thread is still in
/// the span or never was.
///
/// Spans may be left in any order.
pub(crate) fn exit(key: SpanKey, now: i64) {
    change(|spans| {
        let frames = &mut spans.entered;
        let at = frames.iter().rposition(|frame| frame.span.key == key)?;
        let frame = frames.remove(at);
        let attached = frame.attached?;
        let mut above = frames.iter_mut().skip(at);
        match above.find_map(|it| it.attached.as_mut()) {
            Some(above) => attached.detach_below(above),
            None => drop(attached),
        }
        // If the clock was set back meanwhile, the stay counts as none.
        let stay = now.saturating_sub(frame.entered).max(0).unsigned_abs();
        frame.span.busy.fetch_add(stay, Ordering::Relaxed);
        spans.last = Some(frame.span);
        Some(())
    });
}

/// Returns the innermost span in the form for other processes.
pub(crate) fn traceparent() -> Option<TraceParent> {
    change(|spans| Some(spans.entered.last()?.span.call.traceparent())).flatten()
}

/// Not possible if the thread is about to end, or in a signal handler that interrupts a change.
fn change<T>(change: impl FnOnce(&mut Spans) -> T) -> Option<T> {
    let changed = SPANS.try_with(|spans| Some(change(&mut *spans.try_borrow_mut().ok()?)));
    changed.ok().flatten()
}
