//! A place of traces, followed row by row; FORMAT.md, "Calls".
//!
//! Which rows call others cannot be foretold, so that nothing here branches on it: all that could be
//! is computed, and what is, is selected.

use std::hint::select_unpredictable as select;

/// So deep the first execution beneath a caller is remembered.
const DEPTHS: usize = 32;

/// The first depth that is not.
const LEAST_DEEP: i64 = 32;

/// What stands for all other depths, of which none is remembered.
const DEEP: usize = DEPTHS;

/// Where what need not be remembered is put.
const ELSEWHERE: usize = DEPTHS + 1;

/// How many there is room for: a power of two, so that a mask bounds what selects one.
const ROOM: usize = 2 * DEPTHS;

/// Instead of an order index: there is no first execution. No row has this one, whose width is that
/// of 32 bits.
const NONE: i64 = i64::MIN;

/// What is known of a place behind its last row.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// How deep the last row was; 0 if no trace is open.
    depth: i64,
    /// Where its depth is remembered.
    at: usize,
    /// The largest order index of the trace.
    order: i64,
    /// When the last row ended.
    last: i64,
    /// The trace.
    pub(super) trace: i64,
    pub(super) session: u32,
    /// By depth: when the first execution whose caller is still to come began, and its order
    /// index.
    first_begin: [i64; ROOM],
    first_order: [i64; ROOM],
}

/// What is told of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) step: i64,
    pub(super) order: i64,
    pub(super) end: i64,
    pub(super) gap: i64,
    /// Whether it began before what the gap is measured from.
    pub(super) before: bool,
}

/// What follows for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) depth: i64,
    pub(super) order: i64,
    pub(super) begin: i64,
}

impl Place {
    /// Without a row; the first one ends then.
    pub(super) fn new(end: i64) -> Self {
        Self {
            depth: 0,
            at: 0,
            order: 0,
            last: end,
            trace: 0,
            session: 0,
            first_begin: [0; ROOM],
            first_order: [NONE; ROOM],
        }
    }

    /// Whether the next row is the first one of a trace.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.depth == 0
    }

    /// Begins a trace.
    pub(super) fn begin(&mut self, trace: i64, session: u32) {
        (self.trace, self.session) = (trace, session);
        (self.depth, self.at) = (1, 1);
        self.order = 0;
        self.first_order = [NONE; ROOM];
    }

    /// Follows a row.
    #[inline]
    pub(super) fn follow(&mut self, told: Told) -> Row {
        let first_order = self.first_order.get_mut(self.at % ROOM);
        let first_begin = self.first_begin.get(self.at % ROOM);
        let (mut near, mut expected) = (self.last, self.order.wrapping_add(told.step));
        if let (Some(order), Some(begin)) = (first_order, first_begin) {
            let caller = told.step == 0;
            let calls = caller & (*order != NONE);
            near = select(calls, *begin, near);
            expected = select(calls, order.wrapping_sub(1), expected);
            *order = select(caller, NONE, *order);
        }
        let gap = select(told.before, told.gap.wrapping_neg(), told.gap);
        let begin = near.wrapping_add(gap);
        let order = expected.wrapping_add(told.order);
        let depth = self.depth.wrapping_add(told.step).wrapping_sub(1);
        let deep = !(0..LEAST_DEEP).contains(&depth);
        self.at = select(deep, DEEP, usize::try_from(depth).unwrap_or(DEEP));
        let known = self.first_order.get(self.at % ROOM);
        let known = known.is_some_and(|order| *order != NONE);
        let at = select(known, ELSEWHERE, self.at);
        if let Some(first) = self.first_begin.get_mut(at % ROOM) {
            *first = begin;
        }
        if let Some(first) = self.first_order.get_mut(at % ROOM) {
            *first = order;
        }
        if let Some(deep) = self.first_order.get_mut(DEEP) {
            *deep = NONE;
        }
        self.depth = depth;
        self.order = select(order > self.order, order, self.order);
        self.last = told.end;
        Row {
            depth,
            order,
            begin,
        }
    }
}
