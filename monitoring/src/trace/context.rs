//! A place in a trace as a value, which threads and tasks take along.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use super::events::{self, Entered, EventPosition, Origin};
use super::{Active, Position, at, begin_trace, count, parent_here, replace_parent, with_counter};
use crate::traceparent::TraceParent;

/// A place in a trace: calls made there become children of the call that was open where the
/// context was taken.
///
/// Asynchronous probed functions carry it along by themselves.
/// It is needed where a trace is to go on in another thread or task, which otherwise begin traces
/// of their own:
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
    /// There is one if a trace is active, except for what [`replace`] takes off a thread.
    counter: Option<Arc<AtomicU32>>,
    /// Where the trace, or one that begins here, comes from.
    parent: Option<Arc<TraceParent>>,
    /// Where the next event goes.
    events: EventPosition,
}

impl TraceContext {
    /// The place at which this thread (or the task it is polling) is now; [`Self::none`] outside
    /// of every probed call.
    ///
    /// The first call within a trace allocates its shared counter.
    ///
    /// Events are in order within a thread or task only, so that those of calls made in this context
    /// are in traces of their own, with the present one and its last event as their parent.
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
        // Without thread-local storage the thread is about to end; its trace goes on alone.
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

    /// No trace, but traces that begin here come from another process: each has a `TraceMetadata`
    /// record with its parent.
    pub fn continuing(parent: &TraceParent) -> Self {
        Self {
            active: Active::NONE,
            counter: None,
            parent: Some(Arc::new(*parent)),
            events: EventPosition::NONE,
        }
    }

    /// What a request made here says of the trace to another process; `None` without a trace.
    ///
    /// The call that it names is the last one of the trace that began; where only events are recorded,
    /// it is the last event.
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
        let eoi = i32::try_from(begun.saturating_sub(1)).unwrap_or(i32::MAX);
        Some(TraceParent::of_call(trace_id, eoi, self.parent.as_deref()))
    }

    /// No trace: the next probed call begins one.
    ///
    /// Worth attaching where a synchronous probed function runs an executor: all that it polls on
    /// its own thread would be part of its trace.
    pub const fn none() -> Self {
        Self {
            active: Active::NONE,
            counter: None,
            parent: None,
            events: EventPosition::NONE,
        }
    }

    /// The trace's id, if there is a trace; that of events, if there is no other.
    pub fn trace_id(&self) -> Option<i64> {
        if self.active.depth == 0 {
            self.events.origin().map(|origin| origin.trace_id)
        } else {
            Some(self.active.trace_id)
        }
    }

    /// Makes this the context of the thread until the guard is dropped.
    ///
    /// Guards of a thread must be dropped in the reverse order in which they were made, those of
    /// [`enter!`](crate::enter) included.
    pub fn attach(self) -> Attached {
        Attached {
            outer: replace(self),
            not_send: PhantomData,
        }
    }

    /// Polls a future in this context, which takes along what changed in it.
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
    outer: TraceContext,
    not_send: PhantomData<*const ()>,
}

impl Drop for Attached {
    fn drop(&mut self) {
        drop(replace(std::mem::replace(
            &mut self.outer,
            TraceContext::none(),
        )));
    }
}

/// Runs a future in a trace: attaches the context for the time of each poll.
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

/// Begins an asynchronous call: its position, and the context in which its body is to be polled.
///
/// The thread's own context stays as it is.
pub(crate) fn enter_async() -> (Position, TraceContext) {
    let outer = TraceContext::of_task();
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
        depth: ess.saturating_add(1),
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

/// Begins an asynchronous call that records events, and makes the context in which its body is
/// to be polled.
pub(crate) fn enter_events_async() -> (Entered, TraceContext) {
    let (entered, events) = events::enter_events_async();
    let context = TraceContext {
        events,
        ..TraceContext::of_task()
    };
    (entered, context)
}

/// Exchanges a context with the thread's, and exchanges them back when dropped, in a panic too.
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

/// Sets the thread's context and returns what it was.
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
