//! The spans that a thread is in. Each one brought its trace context to the thread.

use std::cell::RefCell;

use baler_monitoring::{Attached, TraceContext, TraceParent};
use tracing_core::span::Id;

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// A span that the thread has entered and not left.
#[derive(Debug)]
struct Frame {
    /// The number of the layer, because registries do not have different ids.
    layer: u64,
    span: u64,
    /// The span in the form for other processes.
    identity: TraceParent,
    /// The time at which the thread entered it.
    entered: i64,
    /// `None` if the thread was in the span already.
    attached: Option<Attached>,
}

/// Enters a span, and makes its context the thread's. Does nothing if the thread is about to end.
pub(crate) fn enter(
    layer: u64,
    span: &Id,
    identity: TraceParent,
    within: TraceContext,
    clock: impl FnOnce() -> i64,
) {
    let span = span.into_u64();
    change(|frames| {
        let is_known = frames.iter().any(|it| it.layer == layer && it.span == span);
        frames.push(Frame {
            layer,
            span,
            identity,
            attached: (!is_known).then(|| within.attach()),
            // Last, so that the span's time does not contain the layer's.
            entered: clock(),
        });
    });
}

/// Leaves a span, and takes its context from the thread. Returns the time at which the thread
/// entered it, unless it is still in it, or never was.
///
/// Spans may be left in any order.
pub(crate) fn exit(layer: u64, span: &Id) -> Option<i64> {
    let span = span.into_u64();
    change(|frames| {
        let mut known = frames.iter();
        let at = known.rposition(|it| it.layer == layer && it.span == span)?;
        let frame = frames.remove(at);
        let attached = frame.attached?;
        let mut above = frames.iter_mut().skip(at);
        match above.find_map(|it| it.attached.as_mut()) {
            Some(above) => attached.detach_below(above),
            None => drop(attached),
        }
        Some(frame.entered)
    })
    .flatten()
}

/// Returns the innermost span in the form for other processes.
pub(crate) fn innermost() -> Option<TraceParent> {
    change(|frames| frames.last().map(|frame| frame.identity)).flatten()
}

/// Not possible if the thread is about to end, or in a signal handler that interrupts a change.
fn change<T>(change: impl FnOnce(&mut Vec<Frame>) -> T) -> Option<T> {
    let changed = FRAMES.try_with(|frames| Some(change(&mut *frames.try_borrow_mut().ok()?)));
    changed.ok().flatten()
}
