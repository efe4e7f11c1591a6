//! Calls of which nothing is told but when they began and ended.

use super::record::{push, read_marked};
use super::site::{OFF, Site};
use crate::clock::ticks;
use crate::controller;
use crate::queue::{self, CALL_WORDS, KIND_CALL, KIND_DURATION};

/// A call, synchronous or not, of which a duration is recorded when the guard is dropped.
///
/// It has no place in a trace, hence nothing to do with its thread: an asynchronous one may end on
/// another.
#[derive(Debug)]
#[must_use = "the call ends at once unless the guard is kept in a variable"]
pub struct DurationGuard {
    site: &'static Site,
    /// When it began, as its row has it; 0 if it is not recorded.
    tin: u64,
}

impl DurationGuard {
    /// Begins a call, if calls are recorded there.
    #[inline(always)]
    pub(super) fn new(site: &'static Site) -> Self {
        let state = site.state();
        let tin = if state == OFF {
            0
        } else if state.cast_signed() > 0 {
            ticks::read()
        } else {
            begin_slowly(site)
        };
        Self { site, tin }
    }
}

impl Drop for DurationGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.tin == 0 {
            return;
        }
        end(self.site, || self.tin);
    }
}

/// Ends a call that has begun; when, is asked after the clock as in [`end_begun`](super::record::end_begun).
#[inline(always)]
pub(super) fn end(site: &'static Site, tin: impl FnOnce() -> u64) {
    let tout = ticks::read();
    let tin = tin();
    let state = site.state_at_end();
    if !queue::append_call(state, || row(site, tin, tout)) {
        end_slowly(site, tin);
    }
}

/// A call of another kind, without a trace.
#[inline(always)]
fn row(site: &Site, tin: u64, tout: u64) -> [u64; CALL_WORDS] {
    let header = site.header() ^ (KIND_CALL ^ KIND_DURATION);
    [header, 0, tin, tout, 0]
}

/// Begins the first call of a site, or one that has no ticks; when that was.
#[cold]
#[inline(never)]
fn begin_slowly(site: &'static Site) -> u64 {
    let key = controller::active_key();
    if site.active().is_none() || key == 0 {
        0
    } else {
        read_marked(key)
    }
}

#[cold]
#[inline(never)]
fn end_slowly(site: &'static Site, tin: u64) {
    let key = controller::active_key();
    if key != 0 {
        push(key, row(site, tin, read_marked(key)));
    }
}
