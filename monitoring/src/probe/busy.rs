//! Asynchronous calls whose records contain the time of their polls.

use std::task::Poll;
use std::thread;

use baler_common::record::Record as _;
use baler_common::record::timing::AsyncOperationExecutionRecord;

use super::call::{AsyncCall, AsyncRecord};
use super::record::{no_session, push_record};
use super::site::Site;
use crate::controller::{self, active_unix_ns};
use crate::trace::{self, Position, TraceContext, eoi_and_ess};

/// An asynchronous call that is recorded with the time inside its polls.
#[derive(Debug)]
pub struct BusyCall {
    site: &'static Site,
    position: Position,
    /// Times are in nanoseconds.
    tin: i64,
    busy: u64,
    polls: u32,
    is_done: bool,
    was_panicking: bool,
}

impl Site {
    /// Begins an asynchronous call that is recorded with the time inside its polls.
    #[inline]
    pub fn enter_async_busy(&'static self) -> AsyncCall<BusyCall> {
        AsyncCall::begin(self, begin)
    }
}

fn begin(site: &'static Site) -> Option<(BusyCall, TraceContext)> {
    let key = controller::active_key();
    if key == 0 {
        return None;
    }
    let (position, context) = trace::enter_async();
    let call = BusyCall {
        site,
        position,
        tin: active_unix_ns(key),
        busy: 0,
        polls: 0,
        is_done: false,
        was_panicking: thread::panicking(),
    };
    Some((call, context))
}

/// Measures a poll, also one that panics.
struct PollTimer<'a> {
    began: i64,
    sum: &'a mut u64,
}

impl<'a> PollTimer<'a> {
    fn begin(sum: &'a mut u64) -> Self {
        Self { began: now(), sum }
    }
}

impl Drop for PollTimer<'_> {
    fn drop(&mut self) {
        // A clock that was set back meanwhile adds nothing.
        *self.sum += now().max(self.began).abs_diff(self.began);
    }
}

fn now() -> i64 {
    active_unix_ns(controller::active_key())
}

impl AsyncRecord for BusyCall {
    #[inline]
    fn poll<T>(&mut self, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        self.polls += 1;
        let busy = PollTimer::begin(&mut self.busy);
        let polled = poll();
        drop(busy);
        self.is_done = polled.is_ready();
        polled
    }

    #[inline(never)]
    fn end(&mut self) {
        let key = controller::active_key();
        let Some(shared) = controller::active_shared() else {
            return;
        };
        // The clock may have been set back meanwhile: the duration must not be negative.
        let tout = active_unix_ns(key).max(self.tin);
        let is_panic = !self.is_done && !self.was_panicking && thread::panicking();
        let [eoi, ess] = eoi_and_ess(self.position.at);
        push_record(key, AsyncOperationExecutionRecord::schema(), tout, |row| {
            row.interned(self.site.signature());
            row.interned(no_session());
            row.i64(self.position.trace_id);
            row.i64(self.tin);
            row.i64(tout);
            row.interned(shared.hostname);
            row.i32(eoi);
            row.i32(ess);
            row.u64(self.busy.min(tout.abs_diff(self.tin)));
            row.u32(self.polls);
            row.bool(!self.is_done && !is_panic);
            row.bool(is_panic);
        });
    }
}
