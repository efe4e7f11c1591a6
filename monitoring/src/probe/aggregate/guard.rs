//! Calls that are added to a cell when they end.

use std::thread::LocalKey;

use super::super::record::{begin_timed, end_published, read_marked};
use super::super::site::Site;
use super::cell::Cell;
use super::cells::{CellSlot, own_cell, with_spare_cell};
use crate::clock::{is_in_ticks, nanoseconds, ticks, unmarked};
use crate::controller;
use crate::queue;

/// A call, synchronous or not. It is added to a cell when the guard is dropped, on whatever thread.
#[derive(Debug)]
#[must_use = "the call ends at once unless the guard is kept in a variable"]
pub struct AggregatedGuard<const HISTOGRAM: bool> {
    /// The start of the call in the form of a row; 0 if the call is not recorded.
    tin: u64,
    site: &'static Site,
    slot: &'static LocalKey<CellSlot>,
}

impl Site {
    /// Begins a call that is added to a cell; it ends when the guard is dropped.
    #[inline(always)]
    pub fn enter_aggregated<const HISTOGRAM: bool>(
        &'static self,
        slot: &'static LocalKey<CellSlot>,
    ) -> AggregatedGuard<HISTOGRAM> {
        AggregatedGuard {
            tin: begin_timed(self),
            site: self,
            slot,
        }
    }
}

impl<const HISTOGRAM: bool> Drop for AggregatedGuard<HISTOGRAM> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.tin != 0 {
            end::<HISTOGRAM>(self.site, self.slot, self.tin);
        }
    }
}

/// Ends a call that is recorded.
#[inline]
fn end<const HISTOGRAM: bool>(site: &'static Site, slot: &'static LocalKey<CellSlot>, tin: u64) {
    let tout = ticks::read();
    let cell = slot.with(CellSlot::cell);
    if !cell.add_fast::<HISTOGRAM>(site.state_at_end(), tin, tout) {
        end_slowly::<HISTOGRAM>(site, slot, tin);
    }
}

/// Ends a call in the unusual cases: the first call of a site on this thread, a call that starts
/// its cell over, a sampled call, or a call without ticks.
#[cold]
#[inline(never)]
fn end_slowly<const HISTOGRAM: bool>(
    site: &'static Site,
    slot: &'static LocalKey<CellSlot>,
    tin: u64,
) {
    if !end_published(site, tin) {
        return;
    }
    let key = controller::active_key();
    let (Some(site), false) = (site.number(), key == 0) else {
        return;
    };
    let tout = read_marked(key);
    let Some(_inside) = queue::admit(key) else {
        return;
    };
    let (tin, tout) = match (unmarked(tin), unmarked(tout)) {
        (None, None) => (tin, tout),
        (Some(tin), Some(tout)) => (tin as u64, tout as u64),
        // Times of two clocks give no duration.
        _ => return,
    };
    let duration = tout.saturating_sub(tin);
    let nanoseconds = HISTOGRAM.then(|| {
        if is_in_ticks(key) {
            nanoseconds(duration)
        } else {
            duration
        }
    });
    let add = |cell: &Cell| cell.add(key, tin, tout, nanoseconds);
    let own = slot.with(CellSlot::own);
    match own.map_or_else(|| own_cell(site, HISTOGRAM, slot), Ok) {
        Ok(cell) => add(cell),
        // A thread that is about to end cannot keep a cell.
        Err(_) => with_spare_cell(site, HISTOGRAM, add),
    }
}
