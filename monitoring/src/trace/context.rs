//! A position in a trace as a value, which threads and tasks take along.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use super::events::{self, Entered, EventPosition, Origin};
use super::{
    Active, Position, at, begin_trace, count, eoi_and_ess, parent_here, replace_parent,
    with_counter,
};
use crate::traceparent::TraceParent;

/// A position in a trace. Calls made there become children of the call that was open where the
/// context was taken.
///
/// Asynchronous probed functions take it along automatically. Use it if a trace must continue in
/// another thread or task, which otherwise begins traces of its own:
///
/// ```
/// use baler_monitoring::TraceContext;
///
/// let context = TraceContext::current();
/// std::thread::spawn(move || {
///     let _attached = context.attach();
///     // Calls of probed functions belong to the trace of the spawning thread here.
/// })
/// .join()
/// .unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct TraceContext {
    active: Active,
    /// Present if a trace is active, except for a context that [`replace`] takes off a thread.
    counter: Option<Arc<AtomicU32>>,
    /// The origin of the trace, or of one that begins here.
    parent: Option<Arc<TraceParent>>,
    /// The position of the next event.
    events: EventPosition,
}

impl TraceContext {
    /// The current position of this thread (or of the task it is polling); [`Self::none`] outside
    /// every probed call.
    ///
    /// The first call within a trace allocates its shared counter.
    ///
    /// Events are only in order within a thread or task. So events of calls made in this context
    /// are in traces of their own, with the present trace and its last event as their parent.
    pub fn current() -> Self {
        let context = Self::of_task();
        Self {
            events: context.events.branch(),
            ..context
        }
    }

    /// As [`Self::current`], for work in the same flow of control.
    fn of_task() -> Self {
        let mut active = Active::here();
        let parent = parent_here();
        let events = EventPosition::here();
        if active.depth == 0 {
            return Self {
                parent,
                events,
                ..Self::none()
            };
        }
        let counter = with_counter(|slot| {
            Arc::clone(slot.get_or_insert_with(|| Arc::new(AtomicU32::new(active.next_eoi))))
        });
        // Without thread-local storage the thread is about to end; its trace continues alone.
        let counter = counter.unwrap_or_else(|| Arc::new(AtomicU32::new(active.next_eoi)));
        active.is_shared = true;
        active.set();
        Self {
            active,
            counter: Some(counter),
            parent,
            events,
        }
    }

    /// No trace, but traces that begin here come from another process. Each gets a `TraceMetadata`
    /// record with its parent.
    pub fn continuing(parent: &TraceParent) -> Self {
        Self {
            parent: Some(Arc::new(*parent)),
            ..Self::none()
        }
    }

    /// Returns the header for a request to another process; `None` without a trace.
    ///
    /// It names the call of the trace that began last. If only events are recorded, it names the
    /// last event.
    pub fn traceparent(&self) -> Option<TraceParent> {
        if self.active.depth == 0 {
            let Origin { trace_id, order } = self.events.origin()?;
            return Some(TraceParent::of_call(
                trace_id,
                order,
                self.parent.as_deref(),
            ));
        }
        let trace_id = self.active.trace_id;
        let counter = self.counter.as_deref();
        let begun = counter.map_or(1, |counter| counter.load(Ordering::Relaxed));
        // As in `count`, indices start over after two billion calls.
        let eoi = (begun.wrapping_sub(1) as i32) & i32::MAX;
        Some(TraceParent::of_call(trace_id, eoi, self.parent.as_deref()))
    }

    /// No trace: the next probed call begins one.
    ///
    /// Attach it where a synchronous probed function runs an executor. Otherwise all tasks that it
    /// polls on its own thread would be part of its trace.
    pub const fn none() -> Self {
        Self {
            active: Active::NONE,
            counter: None,
            parent: None,
            events: EventPosition::NONE,
        }
    }

    /// Returns the trace's id, if there is a trace; otherwise the id of the trace of events, if
    /// there is one.
    pub fn trace_id(&self) -> Option<i64> {
        if self.active.depth == 0 {
            self.events.origin().map(|origin| origin.trace_id)
        } else {
            Some(self.active.trace_id)
        }
    }

    /// Makes this the context of the thread until the guard is dropped.
    ///
    /// Guards of a thread must be dropped in the reverse order in which they were made, including
    /// the guards of [`enter!`](crate::enter).
    pub fn attach(self) -> Attached {
        Attached {
            outer: Some(replace(self)),
            not_send: PhantomData,
        }
    }

    /// As [`Self::traceparent`], but only outside of every call of the trace: the origin of a trace
    /// that begins here.
    fn origin(&self) -> Option<Arc<TraceParent>> {
        if self.active.depth > 0 {
            return self.parent.clone();
        }
        self.traceparent()
            .map(Arc::new)
            .or_else(|| self.parent.clone())
    }

    /// Polls a future in this context, and keeps the context's changes.
    pub(crate) fn poll<F: Future>(
        &mut self,
        future: Pin<&mut F>,
        task: &mut Context<'_>,
    ) -> Poll<F::Output> {
        let _swapped = ContextSwap::new(self);
        future.poll(task)
    }
}

/// Keeps a [`TraceContext`] on its thread until it is dropped.
#[derive(Debug)]
#[must_use = "the context is detached at once unless the guard is kept in a variable"]
pub struct Attached {
    /// The thread's context before; `None` after [`detach_below`](Self::detach_below).
    outer: Option<TraceContext>,
    not_send: PhantomData<*const ()>,
}

impl Attached {
    /// Detaches a context that is not the thread's at present, because `above` was attached next.
    ///
    /// The thread's context stays. When `above` is dropped, the context before this one is back.
    pub fn detach_below(mut self, above: &mut Self) {
        above.outer = self.outer.take();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(outer) = self.outer.take() {
            drop(replace(outer));
        }
    }
}

/// Runs a future in a trace: attaches the context during each poll.
///
/// ```
/// # use baler_monitoring::{TraceContext, in_trace};
/// # fn spawn(_task: impl Future + Send) {}
/// # async fn send_receipt() {}
/// // The receipt is part of the order's trace, although it is sent by another task.
/// spawn(in_trace(TraceContext::current(), send_receipt()));
/// ```
pub async fn in_trace<F: Future>(mut context: TraceContext, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|task| context.poll(future.as_mut(), task)).await
}

/// Begins an asynchronous call: returns its position, and the context for polling its body.
///
/// The thread's own context does not change.
pub(crate) fn enter_async() -> (Position, TraceContext) {
    begin_call(TraceContext::of_task())
}

/// Begins a call in this context: returns its position, and the context within it.
fn begin_call(outer: TraceContext) -> (Position, TraceContext) {
    let (trace_id, counter) = match outer.counter {
        Some(counter) => (outer.active.trace_id, counter),
        None => (
            begin_trace(outer.parent.as_deref()),
            Arc::new(AtomicU32::new(0)),
        ),
    };
    let ess = outer.active.depth;
    let position = Position {
        trace_id,
        at: at(count(&counter), ess),
    };
    let active = Active {
        trace_id,
        depth: ess + 1,
        next_eoi: 0,
        is_shared: true,
    };
    let context = TraceContext {
        active,
        counter: Some(counter),
        parent: outer.parent,
        events: outer.events,
    };
    (position, context)
}

/// Begins an asynchronous call that records events, and makes the context for polling its body.
pub(crate) fn enter_events_async() -> (Entered, TraceContext) {
    let (entered, events) = events::enter_events_async();
    let context = TraceContext {
        events,
        ..TraceContext::of_task()
    };
    (entered, context)
}

/// A call in a trace that another crate records, for example a span of `tracing`.
///
/// It has a place in its trace like the call of a probe. Calls of probes that begin in
/// [`within`](Self::within) are nested in it.
///
/// ```
/// use baler_monitoring::{TraceCall, TraceContext};
///
/// let call = TraceCall::begin(TraceContext::current());
/// {
///     let _attached = call.within().attach();
///     let inner = TraceCall::begin(TraceContext::current());
///     assert_eq!(inner.trace_id(), call.trace_id());
///     assert_eq!((inner.eoi(), inner.ess()), (1, 1));
/// }
/// assert_eq!((call.eoi(), call.ess()), (0, 0));
/// ```
#[derive(Debug, Clone)]
pub struct TraceCall {
    position: Position,
    within: TraceContext,
}

impl TraceCall {
    /// Begins a call in this context, and a trace if the context has none. The thread's own context
    /// does not change.
    pub fn begin(outer: TraceContext) -> Self {
        let parent = outer.origin();
        let (position, within) = begin_call(TraceContext { parent, ..outer });
        let [order, _] = eoi_and_ess(position.at);
        let origin = Origin {
            trace_id: position.trace_id,
            order,
        };
        let within = TraceContext {
            events: EventPosition::from_origin(origin),
            ..within
        };
        Self { position, within }
    }

    /// Returns the trace's id in this process, as in the records of probes.
    pub const fn trace_id(&self) -> i64 {
        self.position.trace_id
    }

    /// Returns its execution order index: how many calls of the trace began earlier.
    pub const fn eoi(&self) -> i32 {
        let [eoi, _] = eoi_and_ess(self.position.at);
        eoi
    }

    /// Returns its execution stack size: how many calls of the trace were open when it began.
    pub const fn ess(&self) -> i32 {
        let [_, ess] = eoi_and_ess(self.position.at);
        ess
    }

    /// Returns the call in the form for other processes: the header of a request that it makes.
    pub fn traceparent(&self) -> TraceParent {
        TraceParent::of_call(self.trace_id(), self.eoi(), self.caller())
    }

    /// Returns the origin of its trace, if the trace comes from another process, or from events.
    pub fn caller(&self) -> Option<&TraceParent> {
        self.within.parent.as_deref()
    }

    /// Returns the context in which calls are nested in this one.
    pub fn within(&self) -> TraceContext {
        self.within.clone()
    }
}

/// Exchanges a context with the thread's, and exchanges them back when dropped, even in a panic.
struct ContextSwap<'a>(&'a mut TraceContext);

impl<'a> ContextSwap<'a> {
    fn new(context: &'a mut TraceContext) -> Self {
        let mut swapped = Self(context);
        swapped.swap();
        swapped
    }

    fn swap(&mut self) {
        let theirs = std::mem::replace(self.0, TraceContext::none());
        *self.0 = replace(theirs);
    }
}

impl Drop for ContextSwap<'_> {
    fn drop(&mut self) {
        self.swap();
    }
}

/// Sets the thread's context and returns the previous one.
fn replace(context: TraceContext) -> TraceContext {
    let active = context.active.replace();
    let parent = replace_parent(context.parent);
    let events = context.events.replace();
    let counter = if active.is_shared || context.active.is_shared {
        with_counter(|slot| std::mem::replace(slot, context.counter)).flatten()
    } else {
        None
    };
    TraceContext {
        active,
        counter,
        parent,
        events,
    }
}
