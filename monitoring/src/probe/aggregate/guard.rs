//! Calls that are added to a cell when they end.

use std::marker::PhantomData;
use std::thread::LocalKey;

use baler_common::record::timing::LogLinear;

use super::super::record::read_clock;
use super::super::site::SiteNumber;
use super::cell::Cell;
use super::cells::{CellSlot, with_cell};
use crate::clock::{is_in_ticks, nanoseconds};
use crate::controller;

/// A synchronous call that is added up when the guard is dropped, on the thread that made it.
#[derive(Debug)]
#[must_use = "the call ends at once unless the guard is kept in a variable"]
pub struct AggregatedGuard<const HISTOGRAM: bool, const EVERY: u64> {
    begun: Option<(Begun, Option<&'static Cell>)>,
    slot: &'static LocalKey<CellSlot>,
    not_send: PhantomData<*const ()>,
}

/// An asynchronous call that is added up when it is dropped, on whatever thread that is.
#[derive(Debug)]
#[must_use = "the call ends at once unless it is kept in a variable"]
pub struct AggregatedCall<const HISTOGRAM: bool, const EVERY: u64> {
    begun: Option<Begun>,
    slot: &'static LocalKey<CellSlot>,
}

#[derive(Debug, Clone, Copy)]
struct Begun {
    site: SiteNumber,
    /// That of the controller that records the call.
    key: u64,
    tin: u64,
}

impl<const HISTOGRAM: bool, const EVERY: u64> AggregatedGuard<HISTOGRAM, EVERY> {
    #[inline]
    pub(in super::super) fn new(
        site: Option<SiteNumber>,
        slot: &'static LocalKey<CellSlot>,
    ) -> Self {
        let begun = site.and_then(|site| Some((begin(site)?, slot.with(CellSlot::cell))));
        Self {
            begun,
            slot,
            not_send: PhantomData,
        }
    }
}

impl<const HISTOGRAM: bool, const EVERY: u64> Drop for AggregatedGuard<HISTOGRAM, EVERY> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some((begun, cell)) = self.begun {
            end::<HISTOGRAM, EVERY>(begun, cell, self.slot);
        }
    }
}

impl<const HISTOGRAM: bool, const EVERY: u64> AggregatedCall<HISTOGRAM, EVERY> {
    #[inline]
    pub(in super::super) fn new(
        site: Option<SiteNumber>,
        slot: &'static LocalKey<CellSlot>,
    ) -> Self {
        Self {
            begun: site.and_then(begin),
            slot,
        }
    }
}

impl<const HISTOGRAM: bool, const EVERY: u64> Drop for AggregatedCall<HISTOGRAM, EVERY> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            end::<HISTOGRAM, EVERY>(begun, self.slot.with(CellSlot::cell), self.slot);
        }
    }
}

#[inline]
fn begin(site: SiteNumber) -> Option<Begun> {
    let key = controller::active_key();
    (key != 0).then(|| Begun {
        site,
        key,
        tin: read_clock(key),
    })
}

/// Not inlined, for the same reason as the end of any other call.
#[inline(never)]
fn end<const HISTOGRAM: bool, const EVERY: u64>(
    begun: Begun,
    cell: Option<&'static Cell>,
    slot: &'static LocalKey<CellSlot>,
) {
    let tout = read_clock(begun.key);
    if controller::active_key() != begun.key {
        return;
    }
    match cell {
        Some(cell) => add::<HISTOGRAM, EVERY>(cell, begun, tout),
        None => first(begun, tout, slot, add::<HISTOGRAM, EVERY>),
    }
}

#[cold]
#[inline(never)]
fn first(begun: Begun, tout: u64, slot: &'static LocalKey<CellSlot>, add: fn(&Cell, Begun, u64)) {
    // A call within this one may have got the cell meanwhile.
    match slot.with(CellSlot::cell) {
        Some(cell) => add(cell, begun, tout),
        None => with_cell(begun.site, slot, |cell| add(cell, begun, tout)),
    }
}

#[inline]
fn add<const HISTOGRAM: bool, const EVERY: u64>(cell: &Cell, begun: Begun, tout: u64) {
    let bucket = HISTOGRAM.then(|| {
        let duration = tout.saturating_sub(begun.tin);
        LogLinear::bucket_of(if is_in_ticks(begun.key) {
            nanoseconds(duration)
        } else {
            duration
        })
    });
    cell.add::<EVERY>(begun.key, begun.tin, tout, bucket);
}
