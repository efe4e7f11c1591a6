//! Both ends of a call: the data known at its beginning, and the row made of it at its end.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use baler_common::record::{Interned, Record as _, RowWriter, Schema};
use baler_connector_kieker::types::TraceMetadata;

use super::registry;
use super::site::{OFF, Site, SiteNumber};
use crate::clock::{is_in_ticks, marked, short_of, ticks};
use crate::controller::{self, active_unix_ns};
use crate::queue;
use crate::trace::{self, Origin, Position, TraceContext};
use crate::traceparent::TraceParent;

/// The data of a synchronous call at its start, in the two words that a function can return.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    /// The start of the call in the form of a row; 0 if the call is not recorded.
    pub(super) tin: u64,
    /// Its place in the trace, as Kieker has it: the execution order index (`eoi`) and the size of
    /// the stack (`ess`), 32 bits each.
    pub(super) eoi_and_ess: u64,
}

/// The data of an asynchronous call at its start; it may end on another thread.
#[derive(Debug, Clone, Copy)]
pub struct OperationCall {
    site: &'static Site,
    position: Position,
    tin: u64,
}

impl Begun {
    const NOT: Self = Self {
        tin: 0,
        eoi_and_ess: 0,
    };
}

/// The start of a call that is published for the sampler of threads, but not recorded. No clock
/// shows this time.
const PUBLISHED: u64 = 1;

/// Begins a synchronous call.
#[inline(always)]
pub(super) fn begin(site: &'static Site) -> Begun {
    let state = site.state();
    if state == OFF {
        return Begun::NOT;
    }
    // Usually calls are timed in ticks, within a trace whose next position is known.
    if is_ticking(state) {
        if let Some(eoi_and_ess) = trace::enter_fast() {
            // Last, so that the call's time does not contain the probe's.
            let tin = ticks::read();
            return Begun { tin, eoi_and_ess };
        }
    }
    begin_slowly(site)
}

/// Whether calls at a site in this state are recorded, in ticks.
#[inline]
fn is_ticking(state: u32) -> bool {
    (state as i32) > 0
}

/// Begins a call in the unusual cases: the first call of a site, a call in a trace that spreads, a
/// sampled call, or a call without ticks.
#[cold]
#[inline(never)]
fn begin_slowly(site: &'static Site) -> Begun {
    let (key, published) = begin_published(site);
    let Some(key) = key else {
        return Begun {
            tin: published,
            eoi_and_ess: 0,
        };
    };
    let eoi_and_ess = trace::enter_fast().unwrap_or_else(trace::enter_slow);
    Begun {
        // Last, as above.
        tin: read_marked(key),
        eoi_and_ess,
    }
}

/// Publishes the call if the site is sampled. Returns the key of the queues into which calls are
/// recorded, if they are, and the start of a call that is not recorded: [`PUBLISHED`] or 0.
fn begin_published(site: &'static Site) -> (Option<u64>, u64) {
    let key = controller::active_key();
    // First, because it registers the site.
    let is_recorded = site.active().is_some() && key != 0;
    let is_published = site.publish(is_recorded);
    (
        is_recorded.then_some(key),
        if is_published { PUBLISHED } else { 0 },
    )
}

/// Ends a call on the slow path; returns whether it is recorded.
pub(super) fn end_published(site: &'static Site, tin: u64) -> bool {
    site.unpublish();
    tin != PUBLISHED
}

/// Begins a call that has no place in a trace. Returns its start in the form of a row, or 0 if the
/// call is not recorded.
#[inline(always)]
pub(super) fn begin_timed(site: &'static Site) -> u64 {
    let state = site.state();
    if state == OFF {
        0
    } else if is_ticking(state) {
        ticks::read()
    } else {
        begin_timed_slowly(site)
    }
}

/// Begins the first call of a site, a sampled call, or a call without ticks.
#[cold]
#[inline(never)]
fn begin_timed_slowly(site: &'static Site) -> u64 {
    let (key, published) = begin_published(site);
    key.map_or(published, read_marked)
}

/// Begins an asynchronous call, and makes the context in which its body is polled.
pub(super) fn begin_async(site: &'static Site) -> Option<(OperationCall, TraceContext)> {
    let key = controller::active_key();
    if key == 0 {
        return None;
    }
    let (position, context) = trace::enter_async();
    let begun = OperationCall {
        site,
        position,
        tin: read_marked(key),
    };
    Some((begun, context))
}

/// Ends a synchronous call that is recorded: passes its row to the queue, unless monitoring was
/// disabled meanwhile, and leaves its place in the trace.
#[inline]
pub(super) fn end(site: &'static Site, begun: Begun) {
    let tout = ticks::read();
    let row = || {
        [
            site.header(),
            trace::id_here(),
            begun.tin,
            tout,
            begun.eoi_and_ess,
        ]
    };
    if queue::append_call(site.state_at_end(), row) {
        trace::leave(begun.eoi_and_ess);
    } else {
        end_slowly(site, begun);
    }
}

/// Ends a call for which the thread's block is not enough, a sampled call, or a call without ticks.
#[cold]
#[inline(never)]
fn end_slowly(site: &'static Site, begun: Begun) {
    if !end_published(site, begun.tin) {
        return;
    }
    let trace_id = trace::id_here() as i64;
    let position = Position {
        trace_id,
        at: begun.eoi_and_ess,
    };
    end_async(&OperationCall {
        site,
        position,
        tin: begun.tin,
    });
    // The stack must be corrected even if monitoring was disabled meanwhile.
    trace::leave(begun.eoi_and_ess);
}

/// Ends an asynchronous call.
pub(super) fn end_async(begun: &OperationCall) {
    let key = controller::active_key();
    if key == 0 {
        return;
    }
    let position = begun.position;
    let trace_id = position.trace_id as u64;
    let tout = read_marked(key);
    push(
        key,
        [begun.site.header(), trace_id, begun.tin, tout, position.at],
    );
}

/// Passes a call to the queue in any possible way. A refused call is counted.
pub(super) fn push(key: u64, call: [u64; queue::CALL_WORDS]) {
    if !queue::append_call(short_of(key), || call) {
        queue::push_call(key, controller::active_queues, call);
    }
}

/// Passes a record to the queue, which counts dropped ones.
pub(super) fn push_record(
    key: u64,
    schema: &Arc<Schema>,
    timestamp: i64,
    write: impl FnOnce(&mut RowWriter<'_>),
) {
    queue::push(key, controller::active_queues, schema, timestamp, write);
}

/// Returns the present time in the form of a row: marked unless it is in ticks.
#[inline]
pub(crate) fn read_marked(key: u64) -> u64 {
    if is_in_ticks(key) {
        ticks::read()
    } else {
        marked(active_unix_ns(key))
    }
}

/// Records that a trace comes from another process. Its session is the header `traceparent`, because
/// Kieker's record has no room for W3C's ids, and its readers fail at types that they do not know.
pub(crate) fn record_parent(trace_id: i64, parent: &TraceParent) {
    let (parent_id, order) = (parent.kieker_trace_id(), parent.kieker_order_id());
    let origin = Origin {
        trace_id: parent_id,
        order,
    };
    record_trace(trace_id, origin, &parent.to_string());
}

/// Records a trace that begins on this thread, its origin and its session.
#[cold]
pub(crate) fn record_trace(trace_id: i64, origin: Origin, session: &str) {
    let key = controller::active_key();
    if key == 0 {
        return;
    }
    let hostname = controller::active_shared().map(|shared| shared.hostname);
    let now = active_unix_ns(key);
    push_record(key, TraceMetadata::schema(), now, |row| {
        row.i64(trace_id);
        row.i64(thread_number().into());
        row.str(session);
        row.interned(hostname.unwrap_or_else(no_session));
        row.i64(origin.trace_id);
        row.i32(origin.order);
    });
}

/// Kieker's value for no session (`OperationExecutionRecord.NO_SESSION_ID`).
pub(crate) fn no_session() -> Interned {
    static NO_SESSION: LazyLock<Interned> = LazyLock::new(|| Interned::new("<no-session-id>"));
    *NO_SESSION
}

/// Returns the number of this thread among those that have asked, from 1.
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

/// Returns the signature of the call site with this number, as it is in a row.
pub(crate) fn signature(site: usize) -> Option<Interned> {
    registry::signature(SiteNumber::new(site)?)
}
