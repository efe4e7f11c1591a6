//! What is expected of the next execution in a trace.

/// The most traces that are open at once.
pub(super) const MAX_SLOTS: usize = 256;

/// So deep the first execution beneath a caller is remembered.
const DEPTHS: usize = 32;

/// A trace that goes on, or the one that was before in its place.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) open: bool,
    /// Whether the place, and the trace in it, had a row before.
    used: bool,
    begun: bool,
    pub(super) trace: i64,
    pub(super) session: u32,
    /// How deep the row before was.
    depth: i64,
    /// The largest order index so far.
    order: i64,
    /// When the row before ended.
    last: i64,
    /// Of which depths there is a first execution.
    known: u32,
    /// By depth: when the first execution whose caller is still to come began, and its order
    /// index.
    first: [(i64, i64); DEPTHS],
}

/// What is expected of a row; what it has is told as a difference to this.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// The order index.
    pub(super) order: i64,
    /// When it began, or rather, which other time that is near.
    pub(super) near: i64,
    /// Whether it began before that other time: it called what began then.
    pub(super) before: bool,
}

impl Slot {
    /// For a first row that ended then.
    pub(super) fn new(end: i64) -> Self {
        Self {
            open: false,
            used: false,
            begun: false,
            trace: 0,
            session: 0,
            depth: 1,
            order: 0,
            last: end,
            known: 0,
            first: [(0, 0); DEPTHS],
        }
    }

    /// Begins another trace.
    pub(super) fn begin(&mut self, trace: i64, session: u32) {
        self.open = true;
        self.begun = false;
        self.trace = trace;
        self.session = session;
        self.depth = 1;
        self.order = 0;
        self.known = 0;
    }

    /// The step to a depth: 0 for the caller of the row before, 1 for its neighbour, more for what
    /// is deeper.
    pub(super) fn step(&self, depth: i64) -> i64 {
        depth.wrapping_sub(self.depth).wrapping_add(1)
    }

    /// What is expected of the next row, at this step.
    #[inline]
    pub(super) fn expect(&mut self, step: i64) -> Expected {
        let mut expected = Expected {
            order: self.order.wrapping_add(step),
            near: self.last,
            before: !self.used,
        };
        if step == 0 && self.begun {
            expected.before = true;
            if let Some((bit, at)) = place(self.depth)
                && self.known & bit != 0
                && let Some((begin, order)) = self.first.get(at)
            {
                self.known &= !bit;
                expected.near = *begin;
                expected.order = order.wrapping_sub(1);
            }
        }
        expected
    }

    /// Takes note of the row.
    #[inline]
    pub(super) fn add(&mut self, depth: i64, order: i64, begin: i64, end: i64) {
        if let Some((bit, at)) = place(depth)
            && self.known & bit == 0
            && let Some(first) = self.first.get_mut(at)
        {
            *first = (begin, order);
            self.known |= bit;
        }
        self.depth = depth;
        self.order = self.order.max(order);
        self.last = end;
        (self.used, self.begun) = (true, true);
        // The outermost execution ends its trace.
        self.open = depth != 0;
    }
}

/// Where a depth is remembered.
#[inline]
fn place(depth: i64) -> Option<(u32, usize)> {
    let at = usize::try_from(depth).ok().filter(|at| *at < DEPTHS)?;
    Some((1 << at, at))
}

impl Expected {
    /// How far a row that began then is from what was expected.
    pub(super) fn gap(&self, begin: i64) -> i64 {
        if self.before {
            self.near.wrapping_sub(begin)
        } else {
            begin.wrapping_sub(self.near)
        }
    }
}
