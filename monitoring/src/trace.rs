//! The calls of a trace: their order, and their depth of nesting.
//!
//! A trace begins with the outermost probed call (eoi 0, ess 0) and ends with it, as in Kieker's
//! `OperationExecution` probes and its `ControlFlowRegistry`:
//!
//! - **trace id**: unique in the process, and very likely elsewhere, because its upper half is
//!   random;
//! - **eoi**, execution order index: how many calls of the trace began earlier;
//! - **ess**, execution stack size: how many calls of the trace were open when this one began.
//!
//! Kieker stores the three numbers with the thread. Here they are a value, a [`TraceContext`]. A
//! thread holds it while a synchronous call runs. An asynchronous call takes it along from poll to
//! poll, whatever thread polls it.
//!
//! A synchronous trace costs no allocation, and at most one atomic operation, for its id. As soon
//! as a trace may spread (an asynchronous call, [`TraceContext::current`]), one shared counter
//! counts its eoi. So it stays gapless and without duplicates when branches of the trace run at the
//! same time.

mod context;
mod events;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use baler_common::random::random_u32;

use super::probe::record_parent;
use super::traceparent::TraceParent;

pub use context::{Attached, TraceCall, TraceContext, in_trace};
pub(crate) use context::{enter_async, enter_events_async};
pub(crate) use events::{Entered, Origin, enter_events, leave_events};

thread_local! {
    /// Without a destructor, so that probes work until the very end of a thread.
    static HERE: TracePosition = const {
        TracePosition {
            next: Cell::new(SLOW_PATH),
            has_parent: Cell::new(false),
        }
    };
    /// The id of the active trace; without one the id of the next trace, unless [`SLOW_PATH`] is
    /// set.
    static TRACE_ID: Cell<i64> = const { Cell::new(0) };
    /// The origin of traces that begin on this thread.
    static PARENT: Cell<Option<Arc<TraceParent>>> = const { Cell::new(None) };
    /// The counter of the active trace, if [`Active::is_shared`].
    static COUNTER: Cell<Option<Arc<AtomicU32>>> = const { Cell::new(None) };
}

/// The thread's position in the trace [`TRACE_ID`].
struct TracePosition {
    /// The next call's eoi in the upper half and its ess in the lower one; or [`SLOW_PATH`] and
    /// only the ess. Both with [`TRACE_BITS`]. The ess is 0 if no trace is active.
    next: Cell<u64>,
    /// Whether [`PARENT`] is set.
    has_parent: Cell<bool>,
}

/// The next trace has no id yet, or another counter counts the eoi of this one.
const SLOW_PATH: u64 = 1 << 63;

/// One call more: the eoi and the ess of the next call are both one higher.
const ONE_CALL: u64 = (1 << 32) | 1;

/// The bits of the ess. Sixteen million nested calls do not fit on a stack.
const ESS: u64 = 0xff_ffff;

/// The lowest bits of the trace's id, between ess and eoi. So one comparison also detects a call
/// that ends in another trace than it began in.
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

    /// Returns the thread's context.
    fn here() -> Self {
        HERE.with(|here| {
            let next = here.next.get();
            let [next_eoi, depth] = eoi_and_ess(next & !SLOW_PATH).map(|number| number as u32);
            let is_unusual = next & SLOW_PATH != 0;
            Self {
                trace_id: TRACE_ID.get(),
                depth,
                next_eoi,
                is_shared: is_unusual && depth > 0,
            }
        })
    }

    /// Makes it the thread's context.
    fn set(self) {
        let next = if self.is_shared || self.depth == 0 {
            SLOW_PATH | (u64::from(self.depth) & ESS)
        } else {
            at(self.next_eoi, self.depth)
        };
        TRACE_ID.set(self.trace_id);
        HERE.with(|here| here.next.set(next | trace_bits(self.trace_id)));
    }

    /// Makes it the thread's context, and returns the previous one.
    fn replace(self) -> Self {
        let before = Self::here();
        self.set();
        before
    }
}

/// The position of a call in its trace.
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
    ((trace_id as u64) << TRACE_AT) & TRACE_BITS
}

/// Returns the eoi and the ess of a call, from its position.
pub(crate) const fn eoi_and_ess(at: u64) -> [i32; 2] {
    let [e0, e1, e2, e3, _, s0, s1, s2] = at.to_be_bytes();
    [
        i32::from_be_bytes([e0, e1, e2, e3]),
        i32::from_be_bytes([0, s0, s1, s2]),
    ]
}

/// Begins a call on this thread; returns its eoi and ess, with bits of its trace. `None` if the
/// trace spreads, or if a trace must begin that has no id yet.
#[inline(always)]
pub(crate) fn enter_fast() -> Option<u64> {
    HERE.with(|here| {
        let at = here.next.get();
        if at & SLOW_PATH != 0 {
            return None;
        }
        // After two billion calls the sum sets [`SLOW_PATH`].
        here.next.set(at.wrapping_add(ONE_CALL));
        Some(at)
    })
}

/// As [`enter_fast`], for the cases in which it returns `None`.
pub(crate) fn enter_slow() -> u64 {
    let Position { trace_id, at } = enter();
    at | trace_bits(trace_id)
}

/// Returns the id of this thread's active trace, in the form of a row.
#[inline(always)]
pub(crate) fn id_here() -> u64 {
    TRACE_ID.get() as u64
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
        // Without a counter, two billion calls are reached: eoi starts over.
        active.is_shared = false;
        let eoi = active.next_eoi;
        active.next_eoi = eoi + 1;
        eoi
    });
    let ess = active.depth;
    active.depth = ess + 1;
    active.set();
    Position {
        trace_id: active.trace_id,
        at: at(eoi, ess),
    }
}

/// Ends a call that began on this thread. The outermost call ends its trace.
///
/// The depth becomes the call's own and not just one less. So calls that were entered above it and
/// not left (a forgotten guard) end with it.
///
/// It is not inlined into the probed function. Otherwise that function would keep the address of
/// [`HERE`] in a register from the start of the call, and would have to save that register before.
#[inline(never)]
pub(crate) fn leave(at: u64) {
    HERE.with(|here| {
        // The eoi stays, and the ess is the call's own again.
        let next = here.next.get().wrapping_sub(1);
        if (next ^ at) & (ESS | TRACE_BITS) != 0 {
            leave_others(at);
        } else if at & ESS == 0 {
            leave_trace();
        } else {
            here.next.set(next);
        }
    });
}

/// Ends a call that did not end in order.
#[cold]
#[inline(never)]
fn leave_others(at: u64) {
    let mut active = Active::here();
    let [_, ess] = eoi_and_ess(at).map(|number| number as u32);
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

/// Ends the active trace. The next one gets its id at once, if one is available.
#[inline(never)]
fn leave_trace() {
    HERE.with(|here| {
        if here.next.get() & SLOW_PATH != 0 {
            leave_spread();
        } else if let (false, Some(id)) = (here.has_parent.get(), next_at_hand()) {
            TRACE_ID.set(id);
            here.next.set(trace_bits(id));
        } else {
            here.next.set(SLOW_PATH);
        }
    });
}

/// If no trace is active on this thread, the next one gets a new id.
#[cfg(unix)]
fn forget_next_id() {
    let active = Active::here();
    if active.depth == 0 {
        active.set();
    }
}

/// Ends a trace whose eoi was counted elsewhere.
#[cold]
#[inline(never)]
fn leave_spread() {
    Active::NONE.set();
    drop(with_counter(Option::take));
}

/// Returns the id of a new trace; records its metadata if it comes from another process.
fn begin_trace(parent: Option<&TraceParent>) -> i64 {
    let Some(parent) = parent else {
        return next_trace_id();
    };
    let trace_id = next_trace_id_beside(parent.kieker_trace_id());
    record_parent(trace_id, parent);
    trace_id
}

/// Returns the origin of traces that begin on this thread; `None` if the thread is about to end.
fn parent_here() -> Option<Arc<TraceParent>> {
    let parent = replace_parent(None);
    replace_parent(parent.clone());
    parent
}

fn replace_parent(parent: Option<Arc<TraceParent>>) -> Option<Arc<TraceParent>> {
    let has_parent = parent.is_some();
    if !has_parent && !HERE.with(|here| here.has_parent.get()) {
        return None;
    }
    let before = PARENT.try_with(|cell| cell.replace(parent)).ok()?;
    HERE.with(|here| here.has_parent.set(has_parent));
    before
}

/// Runs with the thread's counter; does not run while the thread's storage is being destroyed.
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
    // After two billion calls the record's `i32` is exhausted. Then indices start over, so that
    // they do not become negative.
    counter.fetch_add(1, Ordering::Relaxed) & (u32::MAX >> 1)
}

/// The number of ids that a thread takes at once, so that shared data is written once for all of
/// them.
const RESERVED_IDS: i64 = 64;

/// The next id for a thread; 0 before the first one of a process.
static NEXT: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// The next id of this thread, and how many ids it has left.
    static OWN: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

/// Returns a new trace id, never negative.
///
/// The upper 31 bits are random, and the lower 32 bits count, as in Kieker's `IdGenerator`. A
/// counter that overflows carries into the upper bits. Ids of one thread are consecutive.
#[inline]
fn next_trace_id() -> i64 {
    next_at_hand().unwrap_or_else(|| {
        let id = take();
        OWN.set((id.wrapping_add(1), RESERVED_IDS.wrapping_sub(1)));
        id & i64::MAX
    })
}

/// Returns a new id for a trace that another one called. Both have the same [`lane_group`].
fn next_trace_id_beside(caller: i64) -> i64 {
    let id = next_trace_id();
    let differing = lane_group(id as u64) ^ lane_group(caller as u64);
    // These bits are random. They are neither the sign nor the counter that makes ids of a process
    // differ.
    id ^ (i64::from(differing) << 32)
}

/// Returns the part of a trace's id that decides its lane. Traces that call each other have the
/// same one, even in different processes.
pub(crate) fn lane_group(trace: u64) -> u16 {
    let [a, b, c, d, e, f, g, h] = trace.to_be_bytes();
    u16::from_be_bytes([a ^ c ^ e ^ g, b ^ d ^ f ^ h])
}

/// Returns a new trace id, if this thread has one.
#[inline]
fn next_at_hand() -> Option<i64> {
    let (next, left) = OWN.get();
    if left <= 0 {
        return None;
    }
    OWN.set((next.wrapping_add(1), left.wrapping_sub(1)));
    Some(next & i64::MAX)
}

#[cold]
fn take() -> i64 {
    if NEXT.load(Ordering::Relaxed) == 0 {
        let upper = i64::from(random_u32() >> 1).max(1);
        // Another thread may have been first.
        NEXT.compare_exchange(0, upper << 32, Ordering::Relaxed, Ordering::Relaxed)
            .ok();
    }
    NEXT.fetch_add(RESERVED_IDS, Ordering::Relaxed)
}

/// In the child of a fork: discards the parent's ids, for this thread and all others.
#[cfg(unix)]
pub(crate) fn forget_ids() {
    OWN.set((0, 0));
    NEXT.store(0, Ordering::Relaxed);
    forget_next_id();
}
