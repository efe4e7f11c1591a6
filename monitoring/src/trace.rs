//! Which calls belong together, in which order they began and how deep they are nested.
//!
//! A trace begins with the outermost probed call (eoi 0, ess 0) and ends with it, as in Kieker's
//! `OperationExecution` probes and its `ControlFlowRegistry`:
//!
//! - **trace id**: unique in the process and, for its upper half is random, most likely elsewhere;
//! - **eoi**, execution order index: how many calls of the trace began earlier;
//! - **ess**, execution stack size: how many calls of the trace were open when this one began.
//!
//! Kieker keeps the three numbers with the thread.
//! Here they are a value, a [`TraceContext`], which a thread holds while a synchronous call runs and
//! which an asynchronous call takes along from poll to poll, whatever thread polls it.
//!
//! A synchronous trace costs no allocation and no atomic operation but one for its id.
//! As soon as a trace may spread (an asynchronous call, [`TraceContext::current`]), its eoi is
//! counted in one shared counter, so that it stays gapless and without duplicates when branches of
//! the trace run at once.

mod events;
mod id;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use events::Place;
pub(crate) use events::{Entered, Origin, enter_events, leave_events};
use id::next_trace_id;

use crate::probe::tell_parent;
use crate::traceparent::TraceParent;

thread_local! {
    /// Without a destructor, so that probes work until the very end of a thread.
    static HERE: Here = const {
        Here {
            next: Cell::new(UNUSUAL),
            has_parent: Cell::new(false),
        }
    };
    /// That of the active trace; without one that of the next trace, unless that is [`UNUSUAL`].
    static TRACE_ID: Cell<i64> = const { Cell::new(0) };
    /// Where traces that begin on this thread come from.
    static PARENT: Cell<Option<Arc<TraceParent>>> = const { Cell::new(None) };
    /// The counter of the active trace, if [`Active::is_shared`].
    static COUNTER: Cell<Option<Arc<AtomicU32>>> = const { Cell::new(None) };
}

/// Where the thread is in the trace [`TRACE_ID`].
struct Here {
    /// The next call's eoi in the upper half and its ess in the lower one, or [`UNUSUAL`] and its
    /// ess alone, with [`TRACE_BITS`]. Its ess is 0 where no trace is active.
    next: Cell<u64>,
    /// Whether there is something in [`PARENT`].
    has_parent: Cell<bool>,
}

/// The next trace has no id yet, or the eoi of this one is counted elsewhere.
const UNUSUAL: u64 = 1 << 63;

/// One call more: its successor's eoi and ess are both one above its own.
const ONE_CALL: u64 = (1 << 32) | 1;

/// Sixteen million calls in each other do not fit a stack.
const ESS: u64 = 0xff_ffff;

/// The lowest bits of the trace's id, between ess and eoi: a call that ends in another trace than it
/// began in is told from one that ends in its turn without another comparison.
const TRACE_BITS: u64 = 0xff << TRACE_AT;
const TRACE_AT: u32 = 24;

/// The plain part of a trace context.
#[derive(Debug, Clone, Copy)]
struct Active {
    trace_id: i64,
    /// The ess of the next call; 0 means that no trace is active.
    depth: u32,
    /// The eoi of the next call, unless the counter is shared.
    next_eoi: u32,
    is_shared: bool,
}

impl Active {
    const NONE: Self = Self {
        trace_id: 0,
        depth: 0,
        next_eoi: 0,
        is_shared: false,
    };

    /// The thread's.
    fn here() -> Self {
        HERE.with(|here| {
            let next = here.next.get();
            let depth = u32::try_from(next & ESS).unwrap_or(0);
            let is_unusual = next & UNUSUAL != 0;
            Self {
                trace_id: TRACE_ID.get(),
                depth,
                next_eoi: u32::try_from((next & !UNUSUAL) >> 32).unwrap_or(0),
                is_shared: is_unusual && depth > 0,
            }
        })
    }

    /// Makes it the thread's.
    fn set(self) {
        let next = if self.is_shared || self.depth == 0 {
            UNUSUAL | (u64::from(self.depth) & ESS)
        } else {
            at(self.next_eoi, self.depth)
        };
        TRACE_ID.set(self.trace_id);
        HERE.with(|here| here.next.set(next | trace_bits(self.trace_id)));
    }

    /// Makes it the thread's, and says what that was.
    fn replace(self) -> Self {
        let before = Self::here();
        self.set();
        before
    }
}

/// Where in which trace a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) trace_id: i64,
    /// Its eoi in the upper half, its ess in the lower one.
    pub(crate) at: u64,
}

fn at(eoi: u32, ess: u32) -> u64 {
    (u64::from(eoi) << 32) | (u64::from(ess) & ESS)
}

const fn trace_bits(trace_id: i64) -> u64 {
    (trace_id.cast_unsigned() << TRACE_AT) & TRACE_BITS
}

/// The eoi and the ess of a call, from what a thread knows it by.
pub(crate) const fn eoi_and_ess(at: u64) -> u64 {
    at & !TRACE_BITS
}

/// Begins a call on this thread; its eoi and ess, with bits of its trace. `None` if the trace spreads, or if one is to begin
/// that has no id yet.
#[inline(always)]
pub(crate) fn enter_usually() -> Option<u64> {
    HERE.with(|here| {
        let at = here.next.get();
        if at & UNUSUAL != 0 {
            return None;
        }
        // Two billion calls later the sum is unusual.
        here.next.set(at.wrapping_add(ONE_CALL));
        Some(at)
    })
}

/// As [`enter_usually`], where that does not do.
pub(crate) fn enter_unusually() -> u64 {
    let Position { trace_id, at } = enter();
    at | trace_bits(trace_id)
}

/// The id of the trace that is active on this thread, as a row has it.
#[inline(always)]
pub(crate) fn id_here() -> u64 {
    TRACE_ID.get().cast_unsigned()
}

/// Begins a call on this thread, and a trace if there is none.
fn enter() -> Position {
    let mut active = Active::here();
    if active.depth == 0 {
        active = Active {
            trace_id: begin_trace(parent_here().as_deref()),
            ..Active::NONE
        };
    }
    let shared = active.is_shared.then(next_shared_eoi).flatten();
    let eoi = shared.unwrap_or_else(|| {
        // Without a counter these are the two billion calls: eoi begins anew.
        active.is_shared = false;
        let eoi = active.next_eoi;
        active.next_eoi = eoi.saturating_add(1);
        eoi
    });
    let ess = active.depth;
    active.depth = ess.saturating_add(1);
    active.set();
    Position {
        trace_id: active.trace_id,
        at: at(eoi, ess),
    }
}

/// Ends a call that began on this thread, and with the outermost one its trace.
///
/// The depth becomes the call's own rather than one less: whatever was entered above it and not
/// left (a forgotten guard) is left with it.
///
/// It is no part of the probed function: that would keep the address of [`HERE`], which it needs when
/// a call begins, in a register until then, and save that register before.
#[inline(never)]
pub(crate) fn leave(at: u64) {
    HERE.with(|here| {
        let next = here.next.get();
        if next.wrapping_sub(at) & (ESS | TRACE_BITS) != 1 {
            leave_others(at);
        } else if at & ESS == 0 {
            leave_trace();
        } else {
            here.next.set(next.wrapping_sub(1));
        }
    });
}

/// Ends a call that did not end in its turn.
#[cold]
#[inline(never)]
fn leave_others(at: u64) {
    let mut active = Active::here();
    let ess = u32::try_from(at & ESS).unwrap_or(0);
    if trace_bits(active.trace_id) != at & TRACE_BITS || active.depth <= ess {
        return;
    }
    if ess == 0 {
        leave_trace();
    } else {
        active.depth = ess;
        active.set();
    }
}

/// Ends the active trace; the next one gets its id at once, if there is one at hand.
#[inline(never)]
fn leave_trace() {
    HERE.with(|here| {
        if here.next.get() & UNUSUAL != 0 {
            leave_spread();
        } else if let (false, Some(id)) = (here.has_parent.get(), id::next_at_hand()) {
            TRACE_ID.set(id);
            here.next.set(trace_bits(id));
        } else {
            here.next.set(UNUSUAL);
        }
    });
}

/// Ends a trace whose eoi was counted elsewhere.
#[cold]
#[inline(never)]
fn leave_spread() {
    Active::NONE.set();
    drop(with_counter(Option::take));
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

/// Begins an asynchronous call of which events are told, and makes the context in which its body is
/// to be polled.
pub(crate) fn enter_events_async() -> (Entered, TraceContext) {
    let (entered, events) = events::enter_events_async();
    let context = TraceContext {
        events,
        ..TraceContext::of_task()
    };
    (entered, context)
}

/// The id of a new trace, which is told if it comes from elsewhere.
fn begin_trace(parent: Option<&TraceParent>) -> i64 {
    let trace_id = next_trace_id();
    if let Some(parent) = parent {
        tell_parent(trace_id, parent);
    }
    trace_id
}

/// Where traces that begin on this thread come from; not known any more when it is about to end.
fn parent_here() -> Option<Arc<TraceParent>> {
    let parent = replace_parent(None);
    replace_parent(parent.clone());
    parent
}

fn replace_parent(parent: Option<Arc<TraceParent>>) -> Option<Arc<TraceParent>> {
    let has_parent = parent.is_some();
    let before = PARENT.try_with(|cell| cell.replace(parent)).ok()?;
    HERE.with(|here| here.has_parent.set(has_parent));
    before
}

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
    events: Place,
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

    /// As [`Self::current`], for what is done in the same flow of control.
    fn of_task() -> Self {
        let mut active = Active::here();
        let parent = parent_here();
        let events = Place::here();
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

    /// No trace, but those that begin here come from another process: each of them is told by a
    /// `TraceMetadata` record with its parent.
    pub fn continuing(parent: &TraceParent) -> Self {
        Self {
            active: Active::NONE,
            counter: None,
            parent: Some(Arc::new(*parent)),
            events: Place::NONE,
        }
    }

    /// What a request made here says of the trace to another process; `None` without a trace.
    ///
    /// The call that it names is the last one of the trace that began; where only events are told,
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
            events: Place::NONE,
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
        let _swapped = Swapped::new(self);
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

/// Exchanges a context with the thread's, and exchanges them back when dropped, in a panic too.
struct Swapped<'a>(&'a mut TraceContext);

impl<'a> Swapped<'a> {
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

impl Drop for Swapped<'_> {
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

/// Runs with the thread's counter, or not at all while the thread's storage is being destroyed.
fn with_counter<T>(run: impl FnOnce(&mut Option<Arc<AtomicU32>>) -> T) -> Option<T> {
    COUNTER
        .try_with(|cell| {
            let mut counter = cell.take();
            let result = run(&mut counter);
            cell.set(counter);
            result
        })
        .ok()
}

fn next_shared_eoi() -> Option<u32> {
    with_counter(|slot| slot.as_deref().map(count)).flatten()
}

fn count(counter: &AtomicU32) -> u32 {
    // Two billion calls later the record's `i32` is exhausted; indices then begin anew rather than
    // turn negative.
    counter.fetch_add(1, Ordering::Relaxed) & (u32::MAX >> 1)
}
