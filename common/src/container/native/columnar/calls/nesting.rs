//! What is expected of the next execution in a trace.
//!
//! Which rows call others cannot be foretold, so that nothing here branches on it: all that could be
//! is computed, and what is, is selected.

use std::hint::select_unpredictable as select;

/// The most traces that are open at once.
pub(super) const MAX_SLOTS: usize = 256;

/// So deep the first execution beneath a caller is remembered.
const DEPTHS: u32 = 32;

/// How many there is room for: behind the first of each depth there is a place for what need not be
/// remembered, and all deeper rows share one that never is.
const ROOM: usize = 64;

/// Of the flags: the depths of which there is a first execution.
const FIRSTS: u64 = (1 << DEPTHS) - 1;

/// A trace that goes on, or the one that was before in its place.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) trace: i64,
    pub(super) session: u32,
    /// Where its depth is remembered.
    at: u32,
    flags: u64,
    /// How deep the row before was; 0 if no trace is open.
    depth: i64,
    /// The largest order index so far.
    order: i64,
    /// When the row before ended.
    last: i64,
    /// By depth: when the first execution whose caller is still to come began, and its order
    /// index.
    first: [(i64, i64); ROOM],
}

/// What a row has, as far as it is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) trace: i64,
    pub(super) session: u32,
    pub(super) depth: i64,
    pub(super) order: i64,
    pub(super) begin: i64,
    pub(super) end: i64,
}

/// What is told of it: how it differs from what is expected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    /// 0 for the caller of the row before, 1 for its neighbour, more for what is deeper.
    pub(super) step: i64,
    pub(super) order: i64,
    pub(super) gap: i64,
}

impl Slot {
    /// A place without a trace.
    pub(super) fn new() -> Self {
        Self {
            trace: 0,
            session: 0,
            at: 0,
            flags: 0,
            depth: 0,
            order: 0,
            last: 0,
            first: [(0, 0); ROOM],
        }
    }

    /// Ends the trace.
    pub(super) fn close(&mut self) {
        self.depth = 0;
    }

    /// Whether this trace goes on here.
    #[inline]
    pub(super) fn has(&self, trace: i64) -> bool {
        (self.trace == trace) & !self.is_free()
    }

    /// Whether no trace goes on here.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.depth == 0
    }

    /// Begins a trace with its first row, which may be the first one of the place, and tells it.
    pub(super) fn begin(&mut self, row: &Row, is_first: bool) -> Told {
        (self.trace, self.session) = (row.trace, row.session);
        if is_first {
            self.last = row.end;
        }
        let gap = row.begin.wrapping_sub(self.last);
        (self.flags, self.order) = (0, 0);
        self.keep(row);
        // As if the row before had been as deep as 1.
        Told {
            step: row.depth,
            order: row.order.wrapping_sub(row.depth),
            gap: if is_first { gap.wrapping_neg() } else { gap },
        }
    }

    /// Follows another row of the trace, and tells it.
    #[inline]
    pub(super) fn tell(&mut self, row: &Row) -> Told {
        let step = row.depth.wrapping_sub(self.depth).wrapping_add(1);
        let caller = step == 0;
        let bit = u64::from(caller) << self.at;
        let calls = self.flags & bit != 0;
        let first = self.first.get(index(self.at)).copied();
        let (first_begin, first_order) = first.unwrap_or_default();
        let near = select(calls, first_begin, self.last);
        let expected = self.order.wrapping_add(step);
        let expected = select(calls, first_order.wrapping_sub(1), expected);
        // A caller began before what is near.
        let gap = row.begin.wrapping_sub(near);
        let gap = select(caller, gap.wrapping_neg(), gap);
        self.flags &= !bit;
        self.keep(row);
        Told {
            step,
            order: row.order.wrapping_sub(expected),
            gap,
        }
    }

    /// Remembers a row for those to come.
    #[inline]
    fn keep(&mut self, row: &Row) {
        let at = u32::try_from(row.depth.cast_unsigned().min(DEPTHS.into())).unwrap_or(DEPTHS);
        let known = u32::from(self.flags >> at & 1 != 0);
        if let Some(first) = self.first.get_mut(index(at | known << 5)) {
            *first = (row.begin, row.order);
        }
        self.flags |= 1 << at & FIRSTS;
        (self.depth, self.at) = (row.depth, at);
        self.order = select(row.order > self.order, row.order, self.order);
        self.last = row.end;
    }
}

#[inline]
fn index(at: u32) -> usize {
    usize::try_from(at).unwrap_or(0) % ROOM
}
