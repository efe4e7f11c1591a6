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

mod context;
mod events;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use super::controller::random;
use super::probe::tell_parent;
use super::traceparent::TraceParent;

pub use context::{Attached, TraceContext, in_trace};
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
    /// That of the active trace; without one that of the next trace, unless that is [`SLOW_PATH`].
    static TRACE_ID: Cell<i64> = const { Cell::new(0) };
    /// Where traces that begin on this thread come from.
    static PARENT: Cell<Option<Arc<TraceParent>>> = const { Cell::new(None) };
    /// The counter of the active trace, if [`Active::is_shared`].
    static COUNTER: Cell<Option<Arc<AtomicU32>>> = const { Cell::new(None) };
}

/// Where the thread is in the trace [`TRACE_ID`].
struct TracePosition {
    /// The next call's eoi in the upper half and its ess in the lower one, or [`SLOW_PATH`] and its
    /// ess alone, with [`TRACE_BITS`]. Its ess is 0 where no trace is active.
    next: Cell<u64>,
    /// Whether there is something in [`PARENT`].
    has_parent: Cell<bool>,
}

/// The next trace has no id yet, or the eoi of this one is counted elsewhere.
const SLOW_PATH: u64 = 1 << 63;

/// One call more: its successor's eoi and ess are both one above its own.
const ONE_CALL: u64 = (1 << 32) | 1;

/// Sixteen million calls in each other do not fit a stack.
const ESS: u64 = 0xff_ffff;

/// The lowest bits of the trace's id, between ess and eoi: so one comparison also
/// finds a call that ends in another trace than it began in.
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
            let is_unusual = next & SLOW_PATH != 0;
            Self {
                trace_id: TRACE_ID.get(),
                depth,
                next_eoi: u32::try_from((next & !SLOW_PATH) >> 32).unwrap_or(0),
                is_shared: is_unusual && depth > 0,
            }
        })
    }

    /// Makes it the thread's.
    fn set(self) {
        let next = if self.is_shared || self.depth == 0 {
            SLOW_PATH | (u64::from(self.depth) & ESS)
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
    ((trace_id as u64) << TRACE_AT) & TRACE_BITS
}

/// The eoi and the ess of a call, from what a thread knows it by.
pub(crate) const fn eoi_and_ess(at: u64) -> [i32; 2] {
    let [e0, e1, e2, e3, _, s0, s1, s2] = at.to_be_bytes();
    [
        i32::from_be_bytes([e0, e1, e2, e3]),
        i32::from_be_bytes([0, s0, s1, s2]),
    ]
}

/// Begins a call on this thread; its eoi and ess, with bits of its trace. `None` if the trace spreads, or if one is to begin
/// that has no id yet.
#[inline(always)]
pub(crate) fn enter_fast() -> Option<u64> {
    HERE.with(|here| {
        let at = here.next.get();
        if at & SLOW_PATH != 0 {
            return None;
        }
        // Two billion calls later the sum is unusual.
        here.next.set(at.wrapping_add(ONE_CALL));
        Some(at)
    })
}

/// As [`enter_fast`], where that does not do.
pub(crate) fn enter_slow() -> u64 {
    let Position { trace_id, at } = enter();
    at | trace_bits(trace_id)
}

/// The id of the trace that is active on this thread, as a row has it.
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
        // The eoi stays what it became, and the ess is the call's own again.
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

/// If no trace is active on this thread, the next one gets another id than was meant for it.
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

/// The id of a new trace; records its metadata if it comes from elsewhere.
fn begin_trace(parent: Option<&TraceParent>) -> i64 {
    let Some(parent) = parent else {
        return next_trace_id();
    };
    let trace_id = next_trace_id_beside(parent.kieker_trace_id());
    tell_parent(trace_id, parent);
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

/// So many ids a thread takes at once: what all threads share is written once for all of them.
const RESERVED_IDS: i64 = 64;

/// The id that a thread takes next; 0 before the first one of a process.
static NEXT: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// The next id of this thread, and how many it has left.
    static OWN: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

/// A new trace id, never negative.
///
/// The upper 31 bits are random, the lower 32 bits count, as in Kieker's `IdGenerator`; a counter
/// that overflows carries into the upper bits. Those of one thread follow each other.
#[inline]
fn next_trace_id() -> i64 {
    next_at_hand().unwrap_or_else(|| {
        let id = take();
        OWN.set((id.wrapping_add(1), RESERVED_IDS.wrapping_sub(1)));
        id & i64::MAX
    })
}

/// A new trace id for a trace that another one called. Both have the same [`lane_group`].
fn next_trace_id_beside(caller: i64) -> i64 {
    let id = next_trace_id();
    let differing = lane_group(id as u64) ^ lane_group(caller as u64);
    // These bits are random: neither the sign nor the counter, by which ids of a process differ.
    id ^ (i64::from(differing) << 32)
}

/// The part of a trace's id that decides its lane. Traces that call each other have the same one,
/// also in different processes.
pub(crate) fn lane_group(trace: u64) -> u16 {
    let [a, b, c, d, e, f, g, h] = trace.to_be_bytes();
    u16::from_be_bytes([a ^ c ^ e ^ g, b ^ d ^ f ^ h])
}

/// A new trace id, if this thread has one.
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
        let upper = i64::try_from(random() >> 33).unwrap_or(0).max(1);
        // Another thread may have been faster.
        NEXT.compare_exchange(0, upper << 32, Ordering::Relaxed, Ordering::Relaxed)
            .unwrap_or_default();
    }
    NEXT.fetch_add(RESERVED_IDS, Ordering::Relaxed)
}

/// In the child of a fork: the parent's ids are not used, neither by this thread nor by others.
#[cfg(unix)]
pub(crate) fn forget_ids() {
    OWN.set((0, 0));
    NEXT.store(0, Ordering::Relaxed);
    forget_next_id();
}
