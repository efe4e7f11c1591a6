//! Calls of which nothing is told but when they began and ended.

use std::num::NonZeroU64;

use super::record::read_clock;
use super::site::SiteNumber;
use crate::clock::{is_in_ticks, ticks};
use crate::controller;
use crate::queue::{self, DURATION_WORDS, KIND_DURATION, RowRef, TIN_UNIX_NS, TOUT_UNIX_NS};

/// A call, synchronous or not, of which a duration is recorded when the guard is dropped.
///
/// It has no place in a trace, hence nothing to do with its thread: an asynchronous one may end on
/// another.
#[derive(Debug)]
#[must_use = "the call ends at once unless the guard is kept in a variable"]
pub struct DurationGuard {
    begun: Option<Begun>,
}

#[derive(Debug, Clone, Copy)]
struct Begun {
    /// Which site it is, and what `tin` is, as the row says it.
    header: NonZeroU64,
    tin: u64,
}

impl DurationGuard {
    #[inline]
    pub(super) const fn inactive() -> Self {
        Self { begun: None }
    }

    #[inline]
    pub(super) fn begin(site: SiteNumber) -> Self {
        Self { begun: begin(site) }
    }
}

impl Drop for DurationGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            end(begun);
        }
    }
}

/// Not inlined, for the same reason as the beginning of any other call.
#[inline(never)]
fn begin(site: SiteNumber) -> Option<Begun> {
    let key = controller::active_key();
    if key == 0 {
        return None;
    }
    let clock = if is_in_ticks(key) { 0 } else { TIN_UNIX_NS };
    Some(Begun {
        header: NonZeroU64::MIN | (u64::from(site.get()) << 8) | KIND_DURATION | clock,
        tin: read_clock(key),
    })
}

#[inline(never)]
fn end(begun: Begun) {
    let tout = ticks::read();
    let key = controller::active_key();
    if !queue::append_call_in_ticks(key, || begun.row(0, tout)) {
        end_slowly(begun);
    }
}

#[inline(never)]
fn end_slowly(begun: Begun) {
    let key = controller::active_key();
    if key == 0 {
        return;
    }
    let clock = if is_in_ticks(key) { 0 } else { TOUT_UNIX_NS };
    let [header, tin, tout] = begun.row(clock, read_clock(key));
    let row = [header, tin, tout, 0, 0];
    if !queue::append_call(key, row)
        && let Some(shared) = controller::active_shared(key)
    {
        queue::push_row(&shared.queues, &RowRef::Call(row));
    }
}

impl Begun {
    #[inline]
    fn row(self, clock: u64, tout: u64) -> [u64; DURATION_WORDS] {
        [self.header.get() | clock, self.tin, tout]
    }
}
