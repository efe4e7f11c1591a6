//! Calls that are added to a cell when they end.

use std::marker::PhantomData;
use std::thread::LocalKey;

use super::super::record::read_marked;
use super::super::site::{OFF, Site};
use super::cell::Cell;
use super::cells::{CellSlot, own_cell, with_spare_cell};
use crate::clock::{is_in_ticks, nanoseconds, ticks, unmarked};
use crate::controller;
use crate::queue;

/// A synchronous call that is added up when the guard is dropped, on the thread that made it.
#[derive(Debug)]
#[must_use = "the call ends at once unless the guard is kept in a variable"]
pub struct AggregatedGuard<const HISTOGRAM: bool, const EVERY: u64> {
    /// When it began, as rows have it; 0 if it is not recorded.
    tin: u64,
    site: &'static Site,
    slot: &'static LocalKey<CellSlot>,
    not_send: PhantomData<*const ()>,
}

/// An asynchronous call that is added up when it is dropped, on whatever thread that is.
#[derive(Debug)]
#[must_use = "the call ends at once unless it is kept in a variable"]
pub struct AggregatedCall<const HISTOGRAM: bool, const EVERY: u64> {
    tin: u64,
    site: &'static Site,
    slot: &'static LocalKey<CellSlot>,
}

impl<const HISTOGRAM: bool, const EVERY: u64> AggregatedGuard<HISTOGRAM, EVERY> {
    #[inline(always)]
    pub(in super::super) fn new(site: &'static Site, slot: &'static LocalKey<CellSlot>) -> Self {
        let state = site.state();
        let tin = if state == OFF {
            0
        } else if state.cast_signed() > 0 {
            ticks::read()
        } else {
            begin_slowly(site)
        };
        Self {
            tin,
            site,
            slot,
            not_send: PhantomData,
        }
    }
}

impl<const HISTOGRAM: bool, const EVERY: u64> Drop for AggregatedGuard<HISTOGRAM, EVERY> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.tin == 0 {
            return;
        }
        end::<HISTOGRAM, EVERY>(self.site, self.slot, || self.tin);
    }
}

/// Ends a call that is added up.
#[inline(always)]
pub(in super::super) fn end<const HISTOGRAM: bool, const EVERY: u64>(
    site: &'static Site,
    slot: &'static LocalKey<CellSlot>,
    tin: impl FnOnce() -> u64,
) {
    let tout = ticks::read();
    let tin = tin();
    let cell = slot.with(CellSlot::cell);
    if !cell.add_usually::<HISTOGRAM, EVERY>(site.state_at_end(), tin, tout) {
        end_slowly::<HISTOGRAM, EVERY>(site, slot, tin);
    }
}

impl<const HISTOGRAM: bool, const EVERY: u64> AggregatedCall<HISTOGRAM, EVERY> {
    #[inline]
    pub(in super::super) fn new(site: &'static Site, slot: &'static LocalKey<CellSlot>) -> Self {
        let tin = if site.state() == OFF {
            0
        } else {
            begin_slowly(site)
        };
        Self { tin, site, slot }
    }
}

impl<const HISTOGRAM: bool, const EVERY: u64> Drop for AggregatedCall<HISTOGRAM, EVERY> {
    fn drop(&mut self) {
        if self.tin != 0 {
            end_slowly::<HISTOGRAM, EVERY>(self.site, self.slot, self.tin);
        }
    }
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

/// Ends the first call of a site on this thread, one that begins its cell anew, or one that has no
/// ticks.
#[cold]
#[inline(never)]
fn end_slowly<const HISTOGRAM: bool, const EVERY: u64>(
    site: &'static Site,
    slot: &'static LocalKey<CellSlot>,
    tin: u64,
) {
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
        (Some(tin), Some(tout)) => (tin.cast_unsigned(), tout.cast_unsigned()),
        // Of two clocks no duration can be had.
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
    let add = |cell: &Cell| cell.add::<EVERY>(key, tin, tout, nanoseconds);
    let own = slot.with(CellSlot::own);
    match own.map_or_else(|| own_cell(site, HISTOGRAM, slot), Ok) {
        Ok(cell) => add(cell),
        // A thread that is about to end keeps no cell.
        Err(_) => with_spare_cell(site, HISTOGRAM, add),
    }
}
