//! Calls that are added to a cell when they end.

use std::marker::PhantomData;
use std::thread::LocalKey;

use baler_common::record::timing::LogLinear;

use super::super::record::read_clock;
use super::super::site::SiteNumber;
use super::cell::Cell;
use super::cells::{CellSlot, own_cell, with_spare_cell};
use crate::clock::{is_in_ticks, nanoseconds, ticks};
use crate::controller;

/// Marks a time in nanoseconds since the Unix epoch; ticks are less.
const UNIX_NS: u64 = 1 << 63;

/// The time of a call for which there was no controller any more.
const NEVER: u64 = u64::MAX;

/// A synchronous call that is added up when the guard is dropped, on the thread that made it.
#[derive(Debug)]
#[must_use = "the call ends at once unless the guard is kept in a variable"]
pub struct AggregatedGuard<const HISTOGRAM: bool, const EVERY: u64> {
    cell: Option<&'static Cell>,
    tin: u64,
    /// Set on a thread that is about to end, which has no cell.
    late: Option<SiteNumber>,
    not_send: PhantomData<*const ()>,
}

/// An asynchronous call that is added up when it is dropped, on whatever thread that is.
#[derive(Debug)]
#[must_use = "the call ends at once unless it is kept in a variable"]
pub struct AggregatedCall<const HISTOGRAM: bool, const EVERY: u64> {
    begun: Option<(SiteNumber, u64)>,
    slot: &'static LocalKey<CellSlot>,
}

impl<const HISTOGRAM: bool, const EVERY: u64> AggregatedGuard<HISTOGRAM, EVERY> {
    #[inline]
    pub(in super::super) fn new(
        site: Option<SiteNumber>,
        slot: &'static LocalKey<CellSlot>,
    ) -> Self {
        let Some(site) = site else {
            return Self::with(None, None, NEVER);
        };
        match slot.with(CellSlot::cell) {
            Some(cell) => Self::with(Some(cell), None, begin()),
            None => {
                let (cell, late) = first(site, slot);
                Self::with(cell, late, begin())
            }
        }
    }

    #[inline]
    const fn with(cell: Option<&'static Cell>, late: Option<SiteNumber>, tin: u64) -> Self {
        Self {
            cell,
            tin,
            late,
            not_send: PhantomData,
        }
    }
}

impl<const HISTOGRAM: bool, const EVERY: u64> Drop for AggregatedGuard<HISTOGRAM, EVERY> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(cell) = self.cell {
            end::<HISTOGRAM, EVERY>(cell, self.tin);
        } else if let Some(site) = self.late {
            end_late::<HISTOGRAM, EVERY>(site, self.tin);
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
            begun: site.map(|site| (site, begin())),
            slot,
        }
    }
}

impl<const HISTOGRAM: bool, const EVERY: u64> Drop for AggregatedCall<HISTOGRAM, EVERY> {
    fn drop(&mut self) {
        let Some((site, tin)) = self.begun else {
            return;
        };
        match self
            .slot
            .with(CellSlot::cell)
            .map_or_else(|| first(site, self.slot), |cell| (Some(cell), None))
        {
            (Some(cell), _) => end::<HISTOGRAM, EVERY>(cell, tin),
            (None, Some(site)) => end_late::<HISTOGRAM, EVERY>(site, tin),
            (None, None) => (),
        }
    }
}

/// The cell of a thread that has none yet; else, if the thread is about to end, the site.
#[cold]
#[inline(never)]
fn first(
    site: SiteNumber,
    slot: &'static LocalKey<CellSlot>,
) -> (Option<&'static Cell>, Option<SiteNumber>) {
    match own_cell(site, slot) {
        Ok(cell) => (cell, None),
        Err(_) => (None, Some(site)),
    }
}

/// Not inlined, for the same reason as the beginning of any other call.
#[inline(never)]
fn begin() -> u64 {
    let key = controller::active_key();
    if is_in_ticks(key) {
        return ticks::read();
    }
    begin_slowly(key)
}

#[inline(never)]
fn begin_slowly(key: u64) -> u64 {
    if key == 0 {
        NEVER
    } else {
        read_clock(key) | UNIX_NS
    }
}

#[inline(never)]
fn end<const HISTOGRAM: bool, const EVERY: u64>(cell: &Cell, tin: u64) {
    let tout = ticks::read();
    let key = controller::active_key();
    // A time that is no tick is greater.
    if is_in_ticks(key)
        && cell.has_room_for::<EVERY>(key)
        && let Some(duration) = tout.checked_sub(tin)
    {
        let bucket = HISTOGRAM.then(|| LogLinear::bucket_of(nanoseconds(duration)));
        cell.add_usually(duration, tout, bucket);
    } else {
        end_slowly::<HISTOGRAM, EVERY>(cell, tin);
    }
}

#[inline(never)]
fn end_slowly<const HISTOGRAM: bool, const EVERY: u64>(cell: &Cell, tin: u64) {
    let key = controller::active_key();
    let in_ticks = is_in_ticks(key);
    // Of two clocks no duration can be had.
    if key == 0 || tin == NEVER || in_ticks != (tin & UNIX_NS == 0) {
        return;
    }
    let tin = tin & !UNIX_NS;
    let tout = read_clock(key);
    let bucket = HISTOGRAM.then(|| {
        let duration = tout.saturating_sub(tin);
        LogLinear::bucket_of(if in_ticks {
            nanoseconds(duration)
        } else {
            duration
        })
    });
    cell.add::<EVERY>(key, tin, tout, bucket);
}

#[cold]
#[inline(never)]
fn end_late<const HISTOGRAM: bool, const EVERY: u64>(site: SiteNumber, tin: u64) {
    with_spare_cell(site, |cell| end_slowly::<HISTOGRAM, EVERY>(cell, tin));
}
