//! Both ends of a call: what is known at its beginning, and the row made of it at its end.

use baler_common::record::Interned;

use super::registry;
use super::site::SiteNumber;
use crate::clock::{is_in_system_time, is_in_ticks, system_unix_ns, ticks};
use crate::controller;
use crate::queue::{self, KIND_CALL, RowRef};
use crate::trace::Position;

/// What is known of a call when it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    site: SiteNumber,
    /// That of the controller that records the call.
    key: u64,
    position: Position,
    /// In ticks or in nanoseconds since the Unix epoch, as the key says.
    tin: u64,
}

impl Begun {
    pub(super) fn position(&self) -> Position {
        self.position
    }
}

/// Begins a call, in the trace that `enter` says; `None` if the controller has gone meanwhile.
#[inline]
pub(super) fn begin<T>(
    site: SiteNumber,
    enter: impl FnOnce() -> (Position, T),
) -> Option<(Begun, T)> {
    let key = controller::active_key();
    if key == 0 {
        return None;
    }
    let (position, context) = enter();
    let begun = Begun {
        site,
        key,
        position,
        // Last, so that the call's time does not hold the probe's.
        tin: read_clock(key),
    };
    Some((begun, context))
}

/// Ends a call and hands its row to the queue, unless monitoring was disabled meanwhile.
#[inline]
pub(super) fn end(begun: &Begun) {
    let tout = read_clock(begun.key);
    let is_active = controller::active_key() == begun.key;
    if !(is_active && queue::append_call(begun.key, begun.row(tout))) {
        end_slowly(begun, tout);
    }
}

/// Ends a call for which the thread's block will not do, or that began under another controller.
#[cold]
#[inline(never)]
fn end_slowly(begun: &Begun, tout: u64) {
    let key = controller::active_key();
    // Ticks and nanoseconds make no duration.
    if key == 0 || is_in_ticks(key) != is_in_ticks(begun.key) {
        return;
    }
    let tout = if key == begun.key {
        tout
    } else {
        read_clock(key)
    };
    if let Some(shared) = controller::active_shared(key) {
        queue::push_row(&shared.queues, &RowRef::Call(begun.row(tout)));
    }
}

impl Begun {
    #[inline]
    fn row(&self, tout: u64) -> [u64; queue::CALL_WORDS] {
        [
            (u64::from(self.site.get()) << 8) | KIND_CALL,
            self.position.trace_id.cast_unsigned(),
            self.tin,
            tout,
            self.position.at,
        ]
    }
}

#[inline]
fn read_clock(key: u64) -> u64 {
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

/// The signature of the call site with this number, as a row names it.
pub(crate) fn signature(site: usize) -> Option<Interned> {
    registry::signature(SiteNumber::new(site)?)
}
