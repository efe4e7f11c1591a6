//! Both ends of a call: what is known at its beginning, and the row made of it at its end.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU32, Ordering};

use baler_common::record::Interned;

use super::registry;
use super::site::SiteNumber;
use crate::clock::{is_in_system_time, is_in_ticks, system_unix_ns, ticks};
use crate::controller;
use crate::queue::{self, KIND_CALL, KIND_TRACE, RowRef, TIN_UNIX_NS, TOUT_UNIX_NS};
use crate::trace::{self, Origin, Position, TraceContext};
use crate::traceparent::TraceParent;

/// What is known of a call when it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    /// Which site it is, and what `tin` is, as the row says it.
    header: NonZeroU64,
    position: Position,
    /// In ticks, unless the header says that it is in nanoseconds since the Unix epoch.
    tin: u64,
}

/// Begins a synchronous call; `None` if the controller has gone meanwhile.
///
/// Not inlined, and nor is [`end`]: a function with a probe shall stay as small as it can, and as
/// quick while nothing is recorded. What is unusual is done by other functions, called last, so that
/// these two need no register but those that they may spoil.
#[inline(never)]
pub(super) fn begin(site: SiteNumber) -> Option<Begun> {
    if is_in_ticks(controller::active_key())
        && let Some(position) = trace::enter_usually()
    {
        return Some(Begun {
            header: header(site, 0),
            position,
            // Last, so that the call's time does not hold the probe's.
            tin: ticks::read(),
        });
    }
    begin_slowly(site)
}

#[inline(never)]
fn begin_slowly(site: SiteNumber) -> Option<Begun> {
    begin_in(site, || (trace::enter(), ())).map(|(begun, ())| begun)
}

/// Begins an asynchronous call, and makes the context in which its body is polled.
pub(super) fn begin_async(site: SiteNumber) -> Option<(Begun, TraceContext)> {
    begin_in(site, trace::enter_async)
}

fn begin_in<T>(site: SiteNumber, enter: impl FnOnce() -> (Position, T)) -> Option<(Begun, T)> {
    let key = controller::active_key();
    if key == 0 {
        return None;
    }
    let (position, context) = enter();
    let kind = if is_in_ticks(key) { 0 } else { TIN_UNIX_NS };
    let begun = Begun {
        header: header(site, kind),
        position,
        tin: read_clock(key),
    };
    Some((begun, context))
}

#[inline]
fn header(site: SiteNumber, kind: u64) -> NonZeroU64 {
    NonZeroU64::MIN | (u64::from(site.get()) << 8) | KIND_CALL | kind
}

/// Ends a synchronous call: hands its row to the queue, unless monitoring was disabled meanwhile,
/// and leaves its place in the trace.
#[inline(never)]
pub(super) fn end(begun: &Begun) {
    let tout = ticks::read();
    let key = controller::active_key();
    if !queue::append_call_in_ticks(key, || begun.row(0, tout)) {
        return end_slowly(begun);
    }
    if !trace::leave_usually(begun.position) {
        trace::leave(begun.position);
    }
}

/// Ends a call for which the thread's block will not do, or that has no ticks.
#[inline(never)]
fn end_slowly(begun: &Begun) {
    end_async(begun);
    // The stack is put right even if monitoring was disabled in the meantime.
    trace::leave(begun.position);
}

/// Ends an asynchronous call.
pub(super) fn end_async(begun: &Begun) {
    let key = controller::active_key();
    if key == 0 {
        return;
    }
    let kind = if is_in_ticks(key) { 0 } else { TOUT_UNIX_NS };
    let row = begun.row(kind, read_clock(key));
    if !queue::append_call(key, row)
        && let Some(shared) = controller::active_shared(key)
    {
        queue::push_row(&shared.queues, &RowRef::Call(row));
    }
}

impl Begun {
    #[inline]
    fn row(&self, kind: u64, tout: u64) -> [u64; queue::CALL_WORDS] {
        [
            self.header.get() | kind,
            self.position.trace_id.cast_unsigned(),
            self.tin,
            tout,
            self.position.at,
        ]
    }
}

#[inline]
pub(super) fn read_clock(key: u64) -> u64 {
    if is_in_ticks(key) {
        ticks::read()
    } else {
        read_other_clock(key)
    }
}

#[cold]
#[inline(never)]
fn read_other_clock(key: u64) -> u64 {
    let time = if is_in_system_time(key) {
        system_unix_ns()
    } else {
        controller::active_shared(key).map_or(0, |shared| shared.clock.unix_ns())
    };
    time.cast_unsigned()
}

/// Tells that a trace comes from another process.
pub(crate) fn tell_parent(trace_id: i64, parent: &TraceParent) {
    let (parent, order) = (parent.kieker_trace_id(), parent.kieker_order_id());
    tell_trace(
        trace_id,
        Origin {
            trace_id: parent,
            order,
        },
    );
}

/// Tells of a trace that begins on this thread, and where it comes from.
#[cold]
pub(crate) fn tell_trace(trace_id: i64, origin: Origin) {
    let key = controller::active_key();
    if key == 0 {
        return;
    }
    let kind = if is_in_ticks(key) { 0 } else { TOUT_UNIX_NS };
    let row = [
        KIND_TRACE | kind,
        trace_id.cast_unsigned(),
        origin.trace_id.cast_unsigned(),
        read_clock(key),
        (u64::from(thread_number()) << 32) | u64::from(origin.order.cast_unsigned()),
    ];
    if !queue::append_call(key, row)
        && let Some(shared) = controller::active_shared(key)
    {
        queue::push_row(&shared.queues, &RowRef::Call(row));
    }
}

/// The number of this thread among those that have asked, from 1.
fn thread_number() -> u32 {
    static THREADS: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        NUMBER.set(THREADS.fetch_add(1, Ordering::Relaxed));
    }
    NUMBER.get()
}

/// The signature of the call site with this number, as a row names it.
pub(crate) fn signature(site: usize) -> Option<Interned> {
    registry::signature(SiteNumber::new(site)?)
}
