//! Calls of which nothing is told but when they began and ended.

use super::record::{begin_timed, push, read_marked};
use super::site::Site;
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
        Self {
            site,
            tin: begin_timed(site),
        }
    }
}

impl Drop for DurationGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.tin != 0 {
            end(self.site, self.tin);
        }
    }
}

/// Ends a call that is recorded.
#[inline]
fn end(site: &'static Site, tin: u64) {
    let tout = ticks::read();
    if !queue::append_call(site.state_at_end(), || row(site, tin, tout)) {
        end_slowly(site, tin);
    }
}

/// A call of another kind, without a trace.
#[inline(always)]
fn row(site: &Site, tin: u64, tout: u64) -> [u64; CALL_WORDS] {
    let header = site.header() ^ (KIND_CALL ^ KIND_DURATION);
    [header, 0, tin, tout, 0]
}

#[cold]
#[inline(never)]
fn end_slowly(site: &'static Site, tin: u64) {
    let key = controller::active_key();
    if key != 0 {
        push(key, row(site, tin, read_marked(key)));
    }
}
