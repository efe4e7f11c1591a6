//! A place, which holds one trace at a time; FORMAT.md, "Calls".

/// How many places there are at most.
pub(super) const MAX_PLACES: usize = 256;

/// The first execution beneath a caller is remembered at depths below this.
const DEPTHS: usize = 32;

/// What is known of a place after its last row.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// How deep the last row was; 0 if no trace is open.
    pub(super) depth: i64,
    /// The largest order index of the trace.
    order: i64,
    /// When the last row ended.
    last: i64,
    /// Whether the place had a row, and whether its trace had one.
    place_has_row: bool,
    trace_has_row: bool,
    /// The depths, as bits, that have a first execution whose caller is still to come.
    firsts: u32,
    /// The begin and the order index of those executions.
    first: [(i64, i64); DEPTHS],
}

/// What is expected of the next row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub(super) order: i64,
    /// The time from which the gap to the begin is measured.
    near: i64,
    /// Whether the row began before that time.
    is_before: bool,
}

impl Expected {
    /// When a row with this gap began.
    pub(super) fn begin(self, gap: i64) -> i64 {
        let gap = if self.is_before {
            gap.wrapping_neg()
        } else {
            gap
        };
        self.near.wrapping_add(gap)
    }

    /// The gap of a row that began then.
    pub(super) fn gap(self, begin: i64) -> i64 {
        let gap = begin.wrapping_sub(self.near);
        if self.is_before {
            gap.wrapping_neg()
        } else {
            gap
        }
    }
}

impl Place {
    /// A place without a row, the first of which ends at `end`.
    pub(super) fn new(end: i64) -> Self {
        Self {
            depth: 0,
            order: 0,
            last: end,
            place_has_row: false,
            trace_has_row: false,
            firsts: 0,
            first: [(0, 0); DEPTHS],
        }
    }

    /// Whether the next row is the first one of a trace.
    pub(super) fn is_free(&self) -> bool {
        self.depth == 0
    }

    /// Begins a trace.
    pub(super) fn begin(&mut self) {
        (self.depth, self.order) = (1, 0);
        (self.firsts, self.trace_has_row) = (0, false);
    }

    /// What is expected of the next row, whose depth is one less than that of the last row and
    /// `step`.
    #[inline(always)]
    pub(super) fn expect(&mut self, step: i64) -> Expected {
        let is_caller = step == 0 && self.trace_has_row;
        if is_caller
            && let Some((depth, bit)) = shallow(self.depth)
            && self.firsts & bit != 0
        {
            self.firsts &= !bit;
            let (near, order) = self.first.get(depth).copied().unwrap_or_default();
            return Expected {
                order: order.wrapping_sub(1),
                near,
                is_before: true,
            };
        }
        Expected {
            order: self.order.wrapping_add(step),
            near: self.last,
            is_before: is_caller || !self.place_has_row,
        }
    }

    /// Adds the next row.
    #[inline(always)]
    pub(super) fn add(&mut self, depth: i64, order: i64, begin: i64, end: i64) {
        if let Some((at, bit)) = shallow(depth)
            && self.firsts & bit == 0
            && let Some(first) = self.first.get_mut(at)
        {
            *first = (begin, order);
            self.firsts |= bit;
        }
        (self.depth, self.last) = (depth, end);
        self.order = self.order.max(order);
        (self.place_has_row, self.trace_has_row) = (true, true);
    }
}

/// Where a depth is remembered, if it is, and its bit.
fn shallow(depth: i64) -> Option<(usize, u32)> {
    let at = usize::try_from(depth).ok().filter(|at| *at < DEPTHS)?;
    Some((at, 1 << at))
}
