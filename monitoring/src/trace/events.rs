//! The traces of events, and the order of the events.
//!
//! Kieker separates events from executions. Its `TraceRegistry` gives each outermost call a
//! `TraceMetadata` with an id of its own. The trace's events are numbered from 0
//! (`getNextOrderId`), one before and one after each call. Assembling a trace requires numbers
//! without gaps, and that each call ends before its caller. Concurrent calls cannot be recorded in
//! this way. So a branch in another thread, in another task or beside a call that is still open is
//! a trace of its own, as in Kieker. Its metadata name the trace that it comes from, and its last
//! event there.

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{next_trace_id, next_trace_id_beside, parent_here};

thread_local! {
    /// The position of the thread's next event.
    static PLACE: RefCell<EventPosition> = const { RefCell::new(EventPosition::NONE) };
}

/// Kieker's value for an unknown number.
const UNKNOWN: i32 = -1;

/// The events of one sequential flow of control.
#[derive(Debug)]
struct EventTrace {
    id: i64,
    /// The number of its events.
    events: AtomicU32,
    /// The number of its open calls.
    open: AtomicU32,
}

/// The trace and its event from which another trace comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) trace_id: i64,
    pub(crate) order: i32,
}

/// The position of the next event of a thread or a task.
#[derive(Debug, Clone)]
pub(super) struct EventPosition {
    trace: Option<Arc<EventTrace>>,
    /// How many calls were open here when the innermost one began, including that one.
    depth: u32,
    /// The origin of a trace that begins here.
    origin: Option<Origin>,
}

/// A call after its first event.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) trace_id: i64,
    /// The number of its first event.
    pub(crate) order: i32,
    /// The origin of its trace, if the trace began with it.
    pub(crate) begun: Option<Origin>,
    depth: u32,
    end: End,
}

/// How a call finds its trace at its end.
#[derive(Debug)]
enum End {
    /// It is the thread's trace, and stays it.
    Here,
    /// It is the thread's trace and ends; this becomes the thread's position.
    Outermost(EventPosition),
    /// It is this trace, whatever the thread's position.
    Held(Arc<EventTrace>),
}

impl EventTrace {
    /// Counts the first event of a call at this depth, and opens the call.
    fn open(&self, depth: u32, begun: Option<Origin>) -> Entered {
        self.open.store(depth + 1, Ordering::Relaxed);
        Entered {
            trace_id: self.id,
            order: self.count(),
            begun,
            depth,
            end: End::Here,
        }
    }

    /// Returns the number of the next event, and counts it.
    fn count(&self) -> i32 {
        let number = self.events.fetch_add(1, Ordering::Relaxed);
        // After two billion events the numbers start over, so that they do not become negative.
        (number as i32) & i32::MAX
    }

    fn last(&self) -> i32 {
        let events = self.events.load(Ordering::Relaxed);
        (events.wrapping_sub(1) as i32) & i32::MAX
    }

    /// Counts the last event of the call at this depth. Closes the call and all calls that are
    /// still open above it.
    fn close(&self, depth: u32) -> i32 {
        if self.open.load(Ordering::Relaxed) > depth {
            self.open.store(depth, Ordering::Relaxed);
        }
        self.count()
    }
}

impl EventPosition {
    pub(super) const NONE: Self = Self {
        trace: None,
        depth: 0,
        origin: None,
    };

    /// Returns the thread's position; none if the thread is about to end.
    pub(super) fn here() -> Self {
        change_place(|place| place.clone()).unwrap_or(Self::NONE)
    }

    /// Makes it the thread's position, and returns the previous one.
    pub(super) fn replace(self) -> Self {
        change_place(|place| mem::replace(place, self)).unwrap_or(Self::NONE)
    }

    /// Returns a position for another thread or task. Traces that begin there come from here.
    pub(super) fn branch(&self) -> Self {
        Self {
            origin: self.origin(),
            ..Self::NONE
        }
    }

    /// Returns a position without a trace. Traces that begin there come from this origin.
    pub(super) const fn from_origin(origin: Origin) -> Self {
        Self {
            origin: Some(origin),
            ..Self::NONE
        }
    }

    /// Returns the trace and the last event here, or the origin of traces that begin here.
    pub(super) fn origin(&self) -> Option<Origin> {
        match &self.trace {
            Some(trace) => Some(Origin {
                trace_id: trace.id,
                order: trace.last(),
            }),
            None => self.origin,
        }
    }

    /// Returns the trace in which the next call continues, if there is one: only calls that led
    /// here are open in it.
    fn going_on(&self) -> Option<&Arc<EventTrace>> {
        let trace = self.trace.as_ref();
        trace.filter(|trace| trace.open.load(Ordering::Relaxed) == self.depth)
    }

    /// Begins a trace here; returns the position within it, and its first call.
    fn begin(&self) -> (Self, Entered) {
        let caller = self.caller();
        let trace = Arc::new(EventTrace {
            id: caller.map_or_else(next_trace_id, |it| next_trace_id_beside(it.trace_id)),
            events: AtomicU32::new(0),
            open: AtomicU32::new(0),
        });
        // A trace without an origin is its own parent (Kieker's `TraceRegistry.registerTrace`).
        let begun = caller.unwrap_or(Origin {
            trace_id: trace.id,
            order: UNKNOWN,
        });
        let entered = trace.open(0, Some(begun));
        let within = Self {
            trace: Some(trace),
            depth: 1,
            origin: None,
        };
        (within, entered)
    }

    /// Returns the origin of a trace that begins here: this process, another one, or none.
    fn caller(&self) -> Option<Origin> {
        self.origin().or_else(|| {
            let parent = parent_here()?;
            Some(Origin {
                trace_id: parent.kieker_trace_id(),
                order: parent.kieker_order_id(),
            })
        })
    }
}

/// Changes the thread's position. There is none if the thread is about to end, or in a signal
/// handler that interrupts a change.
fn change_place<T>(change: impl FnOnce(&mut EventPosition) -> T) -> Option<T> {
    let changed = PLACE.try_with(|place| Some(change(&mut *place.try_borrow_mut().ok()?)));
    changed.ok().flatten()
}

/// Begins a call on this thread.
pub(crate) fn enter_events() -> Entered {
    let entered = change_place(|place| {
        let depth = place.depth;
        if let Some(trace) = place.going_on() {
            let entered = trace.open(depth, None);
            place.depth = depth + 1;
            return entered;
        }
        let (within, mut entered) = place.begin();
        entered.end = End::Outermost(mem::replace(place, within));
        entered
    });
    entered.unwrap_or_else(|| {
        let (within, mut entered) = EventPosition::NONE.begin();
        entered.end = within.trace.map_or(End::Here, End::Held);
        entered
    })
}

/// Ends a call that began on this thread. Returns the number of its last event, or -1 if it did not
/// end in order.
pub(crate) fn leave_events(entered: &mut Entered) -> i32 {
    let end = mem::replace(&mut entered.end, End::Here);
    if let End::Held(trace) = end {
        return trace.close(entered.depth);
    }
    let order = change_place(|place| {
        let trace = place.trace.as_ref();
        let trace = trace.filter(|trace| trace.id == entered.trace_id)?;
        let order = trace.close(entered.depth);
        match end {
            End::Outermost(outer) => *place = outer,
            _ => place.depth = entered.depth,
        }
        Some(order)
    });
    order.flatten().unwrap_or(UNKNOWN)
}

/// Begins an asynchronous call, and returns the position for polling its body.
///
/// The thread's own position does not change.
pub(super) fn enter_events_async() -> (Entered, EventPosition) {
    let outer = EventPosition::here();
    let depth = outer.depth;
    let (within, mut entered) = match outer.going_on() {
        Some(trace) => {
            let entered = trace.open(depth, None);
            let within = EventPosition {
                depth: depth + 1,
                ..outer
            };
            (within, entered)
        }
        None => outer.begin(),
    };
    if let Some(trace) = &within.trace {
        entered.end = End::Held(Arc::clone(trace));
    }
    (entered, within)
}
