//! Which events belong together, and in which order they happened.
//!
//! Kieker keeps events apart from executions: its `TraceRegistry` gives each outermost call a
//! `TraceMetadata` with an id of its own, and its events are numbered from 0 (`getNextOrderId`), one
//! before and one after each call.
//! Whoever puts a trace together needs numbers without gaps, and each call to end before the one that
//! called it.
//! Calls that run at once cannot be recorded so: as in Kieker a branch, in another thread, in another task
//! or beside a call that is still open, is a trace of its own, whose metadata name the trace that it
//! comes from and its last event there.

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{next_trace_id, next_trace_id_beside, parent_here};

thread_local! {
    /// Where the thread's next event goes.
    static PLACE: RefCell<EventPosition> = const { RefCell::new(EventPosition::NONE) };
}

/// No number is known, as Kieker says it.
const UNKNOWN: i32 = -1;

/// The events of a flow of control in which one thing happens after the other.
#[derive(Debug)]
struct EventTrace {
    id: i64,
    /// How many events it has.
    events: AtomicU32,
    /// How many of its calls are open.
    open: AtomicU32,
}

/// A trace and one of its events, from which another trace comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) trace_id: i64,
    pub(crate) order: i32,
}

/// Where the next event of a thread or a task goes.
#[derive(Debug, Clone, Default)]
pub(super) struct EventPosition {
    trace: Option<Arc<EventTrace>>,
    /// How many calls were open here when the innermost one began, that one included.
    depth: u32,
    /// Where a trace that begins here comes from.
    origin: Option<Origin>,
}

/// A call whose first event has its number.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) trace_id: i64,
    /// The number of its first event.
    pub(crate) order: i32,
    /// Where its trace comes from, if that began with it.
    pub(crate) begun: Option<Origin>,
    depth: u32,
    end: End,
}

/// How to find the trace of a call when it ends.
#[derive(Debug)]
enum End {
    /// It is the thread's, and stays it.
    Here,
    /// It is the thread's and ends; this is the thread's place then.
    Outermost(EventPosition),
    /// It is this one, wherever that is.
    Held(Arc<EventTrace>),
}

impl EventTrace {
    /// Counts the first event of a call at this depth, and opens it.
    fn open(&self, depth: u32, begun: Option<Origin>) -> Entered {
        self.open.store(depth.saturating_add(1), Ordering::Relaxed);
        Entered {
            trace_id: self.id,
            order: self.count(),
            begun,
            depth,
            end: End::Here,
        }
    }

    /// The number of the next event.
    fn count(&self) -> i32 {
        let number = self.events.fetch_add(1, Ordering::Relaxed);
        // Two billion events later the numbers begin anew rather than turn negative.
        i32::try_from(number & (u32::MAX >> 1)).unwrap_or(i32::MAX)
    }

    fn last(&self) -> i32 {
        let events = self.events.load(Ordering::Relaxed);
        let number = events.wrapping_sub(1) & (u32::MAX >> 1);
        i32::try_from(number).unwrap_or(i32::MAX)
    }

    /// Counts the last event of the call at this depth, and closes it with all that is left open
    /// above it.
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

    /// The thread's; nowhere when the thread is about to end.
    pub(super) fn here() -> Self {
        change_place(|place| place.clone()).unwrap_or_default()
    }

    /// Makes it the thread's, and says what that was.
    pub(super) fn replace(self) -> Self {
        change_place(|place| mem::replace(place, self)).unwrap_or_default()
    }

    /// A place for another thread or task: what begins there comes from here.
    pub(super) fn branch(&self) -> Self {
        Self {
            origin: self.origin(),
            ..Self::NONE
        }
    }

    /// The trace and the last event here, or where they are to come from.
    pub(super) fn origin(&self) -> Option<Origin> {
        match &self.trace {
            Some(trace) => Some(Origin {
                trace_id: trace.id,
                order: trace.last(),
            }),
            None => self.origin,
        }
    }

    /// The trace of the next call, if it is one that goes on: nothing is open in it but what has led
    /// here.
    fn going_on(&self) -> Option<&Arc<EventTrace>> {
        let trace = self.trace.as_ref();
        trace.filter(|trace| trace.open.load(Ordering::Relaxed) == self.depth)
    }

    /// A trace that begins here, and its first call.
    fn begin(&self) -> (Self, Entered) {
        let caller = self.caller();
        let trace = Arc::new(EventTrace {
            id: caller.map_or_else(next_trace_id, |it| next_trace_id_beside(it.trace_id)),
            events: AtomicU32::new(0),
            open: AtomicU32::new(0),
        });
        // A trace from nowhere is its own parent (Kieker's `TraceRegistry.registerTrace`).
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

    /// Where a trace comes from that begins here: this process, another one, or nowhere.
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

/// Changes the thread's place. There is none when the thread is about to end, and for a signal
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
            place.depth = depth.saturating_add(1);
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

/// Ends a call that began on this thread; the number of its last event, or -1 if it did not end in
/// its turn.
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

/// Begins an asynchronous call, and says in which place its body is to be polled.
///
/// The thread's own place stays as it is.
pub(super) fn enter_events_async() -> (Entered, EventPosition) {
    let outer = EventPosition::here();
    let depth = outer.depth;
    let (within, mut entered) = match outer.going_on() {
        Some(trace) => {
            let entered = trace.open(depth, None);
            let within = EventPosition {
                depth: depth.saturating_add(1),
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
