//! Tables of operation executions. Most of a row can be derived from the rows before it; FORMAT.md,
//! "Calls".
//!
//! Executions come in the order of their ends. Within a trace each execution either is the caller
//! of the ones before it, or calls none. So the depth determines the order index, and times are
//! close to those of neighbours in the call tree. (Kieker's `OperationExecutionRecord`: eoi and
//! ess.)
//!
//! A [`Place`] holds one trace at a time and expects its next row. The encoder writes the
//! difference between the real row and the expected one. The decoder adds the difference again.
//! Nobody can predict which rows call others, and a wrong branch prediction costs as much as the
//! rest of a row. So both cases are computed, and one is selected.

use crate::number::{to_u64, to_usize};
use crate::record::{Field, FieldType, Schema};

mod decode;
mod encode;

pub(super) use decode::read;
pub(super) use encode::CallEncoder;

/// The layout's number.
pub(super) const LAYOUT: u8 = 1;

/// The positions of its fields.
mod field {
    pub(super) const OPERATION: usize = 0;
    pub(super) const SESSION: usize = 1;
    pub(super) const TRACE: usize = 2;
    pub(super) const TIN: usize = 3;
    pub(super) const TOUT: usize = 4;
    pub(super) const HOST: usize = 5;
    pub(super) const EOI: usize = 6;
    pub(super) const ESS: usize = 7;
}

/// The types of its fields.
const FIELD_TYPES: [FieldType; 8] = [
    FieldType::String,
    FieldType::String,
    FieldType::I64,
    FieldType::I64,
    FieldType::I64,
    FieldType::String,
    FieldType::I32,
    FieldType::I32,
];

/// Whether a type has the fields of this layout.
pub(super) fn fits(schema: &Schema) -> bool {
    let fields = schema.fields().iter().map(Field::field_type);
    fields.eq(&FIELD_TYPES)
}

/// Sessions: one for each trace, or one for each row.
const SESSION_OF_TRACE: u8 = 0;
const SESSION_OF_ROW: u8 = 1;

/// The most places.
const MAX_PLACES: usize = 256;

/// The first execution below a caller is remembered at depths below this.
const DEPTHS: usize = 32;

/// Room for the first executions. Executions that need not be remembered go to the upper half.
const ROOM: usize = 2 * DEPTHS;

/// The state of a place after its last row.
#[derive(Debug, Clone)]
struct Place {
    /// The depth of the last row; 0 if no trace is open.
    depth: i64,
    /// The largest order index of the trace.
    order: i64,
    /// The end of the last row.
    last: i64,
    /// Whether the place had a row, and whether its trace had one.
    place_has_row: bool,
    trace_has_row: bool,
    /// The index of its depth in `first`; `DEPTHS` if it is not remembered.
    at: usize,
    /// The depths, as bits, with a first execution whose caller has not come yet.
    firsts: u64,
    /// The start and the order index of those executions.
    first: [(i64, i64); ROOM],
}

/// The expected values of the next row.
#[derive(Debug, Clone, Copy)]
struct Expected {
    order: i64,
    /// The time from which the gap to the start is measured.
    near: i64,
    /// Whether the row began before that time.
    is_before: bool,
}

impl Expected {
    /// Returns the start of a row with this gap.
    fn begin(self, gap: i64) -> i64 {
        let gap = select(self.is_before, gap.wrapping_neg(), gap);
        self.near.wrapping_add(gap)
    }

    /// Returns the gap of a row with this start.
    fn gap(self, begin: i64) -> i64 {
        let gap = begin.wrapping_sub(self.near);
        select(self.is_before, gap.wrapping_neg(), gap)
    }
}

impl Place {
    /// Creates a place without a row, whose first row ends at `end`.
    fn new(end: i64) -> Self {
        Self {
            depth: 0,
            order: 0,
            last: end,
            place_has_row: false,
            trace_has_row: false,
            at: 0,
            firsts: 0,
            first: [(0, 0); ROOM],
        }
    }

    /// Whether the next row is the first one of a trace.
    fn is_free(&self) -> bool {
        self.depth == 0
    }

    /// Begins a trace.
    fn begin(&mut self) {
        (self.depth, self.at, self.order) = (1, 1, 0);
        (self.firsts, self.trace_has_row) = (0, false);
    }

    /// Returns the expected values of the next row. Its depth is the depth of the last row plus
    /// `step` minus 1.
    #[inline(always)]
    fn expect(&mut self, step: i64) -> Expected {
        let is_caller = (step == 0) & self.trace_has_row;
        let bit = u64::from(is_caller) << self.at;
        let has_first = self.firsts & bit != 0;
        self.firsts &= !bit;
        let first = self.first.get(self.at % ROOM).copied();
        let (begin, order) = first.unwrap_or_default();
        let next = self.order.wrapping_add(step);
        Expected {
            order: select(has_first, order.wrapping_sub(1), next),
            near: select(has_first, begin, self.last),
            is_before: is_caller | !self.place_has_row,
        }
    }

    /// Adds the next row.
    #[inline(always)]
    fn add(&mut self, depth: i64, order: i64, begin: i64, end: i64) {
        let is_deep = (depth as u64) >= to_u64(DEPTHS);
        let at = select(is_deep, DEPTHS, to_usize(depth as u64));
        let is_known = self.firsts >> at & 1 != 0;
        let place = select(is_known, at + DEPTHS, at);
        if let Some(first) = self.first.get_mut(place % ROOM) {
            *first = (begin, order);
        }
        self.firsts |= select(is_deep, 0, 1 << at);
        (self.depth, self.at, self.last) = (depth, at, end);
        self.order = select(order > self.order, order, self.order);
        (self.place_has_row, self.trace_has_row) = (true, true);
    }
}

/// Selects one of two values. Both are computed, so the compiler needs no branch.
#[inline(always)]
fn select<T: Copy>(condition: bool, then: T, otherwise: T) -> T {
    if condition { then } else { otherwise }
}
