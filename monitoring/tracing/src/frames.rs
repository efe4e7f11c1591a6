//! The spans that a thread is in. Each one brought its trace context to the thread.
//!
//! The thread also keeps the span that it made or left last. Usually it is the span that it enters
//! or closes next, so most calls of `tracing` need no look-up in the registry.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use baler_monitoring::{Attached, TraceParent};
use tracing_core::span::Id;

use crate::layer::SpanData;

thread_local! {
    static SPANS: RefCell<Spans> = const { RefCell::new(Spans { entered: Vec::new(), last: None }) };
}

/// The spans of a thread.
#[derive(Debug)]
struct Spans {
    /// The innermost one is the last.
    entered: Vec<Frame>,
    last: Option<Known>,
}

/// A span with its id. The number of the layer is needed because registries do not have different
/// ids.
#[derive(Debug)]
struct Known {
    layer: u64,
    id: u64,
    data: Arc<SpanData>,
}

/// A span that the thread has entered and not left.
#[derive(Debug)]
struct Frame {
    span: Known,
    /// The time at which the thread entered it.
    entered: i64,
    /// `None` if the thread was in the span already.
    attached: Option<Attached>,
}

impl Known {
    /// Whether it is this span. The registry uses the id of a closed span again.
    fn is(&self, layer: u64, id: u64) -> bool {
        self.id == id && self.layer == layer && !self.data.is_closed.load(Ordering::Relaxed)
    }
}

impl Spans {
    fn take_last(&mut self, layer: u64, id: u64) -> Option<Known> {
        self.last.take_if(|last| last.is(layer, id))
    }
}

/// Keeps a span that the thread has made.
pub(crate) fn keep(layer: u64, id: &Id, data: Arc<SpanData>) {
    let id = id.into_u64();
    change(|spans| spans.last = Some(Known { layer, id, data }));
}

/// Returns a span if it is the innermost one of the thread, or the last one.
pub(crate) fn find(layer: u64, id: &Id) -> Option<Arc<SpanData>> {
    let id = id.into_u64();
    change(|spans| {
        let innermost = spans.entered.last().map(|frame| &frame.span);
        let mut known = innermost.into_iter().chain(&spans.last);
        let found = known.find(|span| span.is(layer, id))?;
        Some(Arc::clone(&found.data))
    })
    .flatten()
}

/// Returns a span that closes, if the thread made or left it last.
pub(crate) fn take(layer: u64, id: &Id) -> Option<Arc<SpanData>> {
    let last = change(|spans| spans.take_last(layer, id.into_u64()));
    last.flatten().map(|last| last.data)
}

/// Enters a span, and makes its context the thread's. Does nothing if the layer does not record the
/// span, or if the thread is about to end.
pub(crate) fn enter(
    layer: u64,
    id: &Id,
    look_up: impl FnOnce() -> Option<Arc<SpanData>>,
    clock: impl FnOnce() -> i64,
) {
    let number = id.into_u64();
    change(|spans| {
        let last = spans.take_last(layer, number);
        let span = last.or_else(|| {
            let (id, data) = (number, look_up()?);
            Some(Known { layer, id, data })
        });
        let Some(span) = span else { return };
        let mut entered = spans.entered.iter();
        let is_known = entered.any(|frame| frame.span.is(layer, number));
        let attached = (!is_known).then(|| span.data.call.within().attach());
        spans.entered.push(Frame {
            span,
            attached,
            // Last, so that the span's time does not contain the layer's.
            entered: clock(),
        });
    });
}

/// Leaves a span at this time, and takes its context from the thread, unless the thread is still in
/// the span or never was.
///
/// Spans may be left in any order.
pub(crate) fn exit(layer: u64, id: &Id, now: i64) {
    let id = id.into_u64();
    change(|spans| {
        let frames = &mut spans.entered;
        let mut known = frames.iter().map(|frame| &frame.span);
        let at = known.rposition(|span| span.id == id && span.layer == layer)?;
        let Frame {
            span,
            entered,
            attached,
        } = frames.remove(at);
        let attached = attached?;
        let mut above = frames.iter_mut().skip(at);
        match above.find_map(|it| it.attached.as_mut()) {
            Some(above) => attached.detach_below(above),
            None => drop(attached),
        }
        span.data.add_busy(now.saturating_sub(entered));
        spans.last = Some(span);
        Some(())
    });
}

/// Returns the innermost span in the form for other processes.
pub(crate) fn innermost() -> Option<TraceParent> {
    change(|spans| Some(spans.entered.last()?.span.data.call.traceparent())).flatten()
}

/// Not possible if the thread is about to end, or in a signal handler that interrupts a change.
fn change<T>(change: impl FnOnce(&mut Spans) -> T) -> Option<T> {
    let changed = SPANS.try_with(|spans| Some(change(&mut *spans.try_borrow_mut().ok()?)));
    changed.ok().flatten()
}
