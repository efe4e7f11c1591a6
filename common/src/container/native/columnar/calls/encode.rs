//! Tables of executions, written.

use super::nesting::Row;
use super::traces::Traces;
use super::{LAYOUT, SESSION_OF_ROW, SESSION_OF_TRACE, field};
use crate::container::native::columnar::ints::{IntEncoder, Sign, low_half, write_reference};
use crate::container::num::to_u64;
use crate::container::varint;
use crate::record::{Column, Table};

/// Fewer rows are not worth it.
const LEAST_ROWS: usize = 8;

/// Writes tables of executions; keeps its memory from chunk to chunk.
#[derive(Debug, Default)]
pub(in crate::container::native::columnar) struct CallEncoder {
    traces: Traces,
    places: Vec<u32>,
    steps: Vec<i32>,
    orders: Vec<i32>,
    gaps: Vec<i64>,
}

/// The columns of a table of executions.
struct Calls<'a> {
    operations: &'a [u32],
    sessions: &'a [u32],
    traces: &'a [i64],
    begins: &'a [i64],
    ends: &'a [i64],
    hosts: &'a [u32],
    orders: &'a [i64],
    depths: &'a [i64],
}

impl<'a> Calls<'a> {
    fn of(table: &'a Table) -> Option<Self> {
        let columns = table.columns();
        let strings = |at: usize| match columns.get(at) {
            Some(Column::String(values)) => Some(values.as_slice()),
            _ => None,
        };
        let numbers = |at: usize| match columns.get(at) {
            Some(Column::Signed(values)) => Some(values.as_slice()),
            _ => None,
        };
        Some(Self {
            operations: strings(field::OPERATION)?,
            sessions: strings(field::SESSION)?,
            traces: numbers(field::TRACE)?,
            begins: numbers(field::TIN)?,
            ends: numbers(field::TOUT)?,
            hosts: strings(field::HOST)?,
            orders: numbers(field::EOI)?,
            depths: numbers(field::ESS)?,
        })
    }
}

impl CallEncoder {
    /// Appends the table in this layout, if its traces nest; `false` and nothing otherwise.
    pub(in crate::container::native::columnar) fn write(
        &mut self,
        table: &Table,
        ints: &mut IntEncoder,
        out: &mut Vec<u8>,
    ) -> bool {
        let rows = table.len();
        if rows < LEAST_ROWS {
            return false;
        }
        let Some(calls) = Calls::of(table) else {
            return false;
        };
        let Some(session_of_trace) = self.follow(&calls) else {
            return false;
        };
        out.extend_from_slice(&[0, LAYOUT]);
        varint::write(out, to_u64(rows));
        varint::write(out, to_u64(self.traces.numbers.len()));
        ints.write_ids(calls.operations, out);
        ints.write_ids(calls.hosts, out);
        ints.write_rising(&self.traces.numbers, out);
        let (kind, sessions) = if session_of_trace {
            (SESSION_OF_TRACE, self.traces.sessions.as_slice())
        } else {
            (SESSION_OF_ROW, calls.sessions)
        };
        out.push(kind);
        ints.write_ids(sessions, out);
        ints.write_short(&self.places, Sign::Unsigned, out);
        ints.write_short(&self.steps, Sign::Signed, out);
        ints.write_short(&self.orders, Sign::Signed, out);
        ints.write_times(calls.ends, out);
        ints.write_spans(&self.gaps, out);
        if table.timestamps() == calls.ends {
            write_reference(to_u64(field::TOUT), out);
        } else if table.timestamps() == calls.begins {
            write_reference(to_u64(field::TIN), out);
        } else {
            ints.write_times(table.timestamps(), out);
        }
        true
    }

    /// Finds the place of each row, and what of it differs from what is expected there; says whether
    /// each trace has one session. `None` where the layout is not worth it.
    #[inline(never)]
    fn follow(&mut self, calls: &Calls<'_>) -> Option<bool> {
        let rows = calls.ends.len();
        // Traces of single rows are not worth it.
        self.traces.clear(rows / 2);
        self.places.resize(rows, 0);
        self.steps.resize(rows, 0);
        self.orders.resize(rows, 0);
        self.gaps.resize(rows, 0);
        let input = calls.traces.iter().zip(calls.sessions).zip(calls.begins);
        let input = input.zip(calls.ends).zip(calls.orders).zip(calls.depths);
        let output = self.places.iter_mut().zip(&mut self.steps);
        let output = output.zip(&mut self.orders).zip(&mut self.gaps);
        let (mut beyond, mut one_session) = (0, true);
        for ((((((trace, session), begin), end), order), depth), out) in input.zip(output) {
            let row = Row {
                trace: *trace,
                session: *session,
                depth: *depth,
                order: *order,
                begin: *begin,
                end: *end,
            };
            let placed = self.traces.tell(row)?;
            let (((place, step), order), gap) = out;
            let told = placed.told;
            one_session &= placed.is_its_session;
            beyond |= above_least(told.step) | above_least(told.order);
            *place = placed.place.into();
            *step = low_half(told.step);
            *order = low_half(told.order);
            *gap = told.gap;
        }
        // Numbers of 32 bits seldom differ by more than fits there.
        (beyond >> 32 == 0).then_some(one_session)
    }
}

/// How far a number is above the least one of 32 bits.
fn above_least(number: i64) -> u64 {
    number.wrapping_sub(i32::MIN.into()).cast_unsigned()
}
