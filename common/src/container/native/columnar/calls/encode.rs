//! Tables of executions, written.

use super::nesting::{MAX_SLOTS, Slot};
use super::{LAYOUT, SESSION_OF_ROW, SESSION_OF_TRACE, field};
use crate::container::native::columnar::ints::{IntEncoder, Shape, Sign, write_reference};
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;
use crate::record::{Column, Table};

/// Fewer rows are not worth it.
const LEAST_ROWS: usize = 8;

/// How many traces are found at once.
const RECENT: usize = 64;

/// Writes tables of executions; keeps its memory from chunk to chunk.
#[derive(Debug, Default)]
pub(in crate::container::native::columnar) struct CallEncoder {
    slots: Vec<Slot>,
    /// By a few bits of a trace's number, where it may be.
    recent: Vec<u8>,
    places: Vec<u8>,
    steps: Vec<i64>,
    orders: Vec<i64>,
    gaps: Vec<i64>,
    traces: Vec<i64>,
    sessions: Vec<u32>,
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
        let Some(session_of_trace) = self.nest(&calls) else {
            return false;
        };
        out.extend_from_slice(&[0, LAYOUT]);
        varint::write(out, to_u64(rows));
        varint::write(out, to_u64(self.traces.len()));
        let number = i64::cast_unsigned;
        let (signed, unsigned) = (Sign::Signed, Sign::Unsigned);
        ints.write_level(calls.operations, unsigned, Shape::Ids, out);
        ints.write_level(calls.hosts, unsigned, Shape::Ids, out);
        ints.write_values(&self.traces, number, signed, out);
        let (kind, sessions) = if session_of_trace {
            (SESSION_OF_TRACE, self.sessions.as_slice())
        } else {
            (SESSION_OF_ROW, calls.sessions)
        };
        out.push(kind);
        ints.write_level(sessions, unsigned, Shape::Ids, out);
        ints.write_level(&self.places, unsigned, Shape::Level, out);
        ints.write_level(&self.steps, signed, Shape::Level, out);
        ints.write_level(&self.orders, signed, Shape::Level, out);
        ints.write_shaped(calls.ends, number, signed, Shape::Rising, out);
        ints.write_level(&self.gaps, signed, Shape::Level, out);
        if table.timestamps() == calls.ends {
            write_reference(to_u64(field::TOUT), out);
        } else if table.timestamps() == calls.begins {
            write_reference(to_u64(field::TIN), out);
        } else {
            ints.write_values(table.timestamps(), number, signed, out);
        }
        true
    }

    /// Finds what differs from what is expected; says whether each trace has one session.
    /// `None` where this is not worth it.
    fn nest(&mut self, calls: &Calls<'_>) -> Option<bool> {
        let rows = calls.ends.len();
        self.slots.clear();
        self.recent.clear();
        self.recent.resize(RECENT, 0);
        self.traces.clear();
        self.sessions.clear();
        self.places.resize(rows, 0);
        self.steps.resize(rows, 0);
        self.orders.resize(rows, 0);
        self.gaps.resize(rows, 0);
        let input = calls.traces.iter().zip(calls.sessions).zip(calls.begins);
        let input = input.zip(calls.ends).zip(calls.orders).zip(calls.depths);
        let places = self.places.iter_mut().zip(&mut self.steps);
        let output = places.zip(&mut self.orders).zip(&mut self.gaps);
        let mut one_session = true;
        let most_traces = rows / 2;
        for ((((((trace, session), begin), end), order), depth), out) in input.zip(output) {
            let (((place, step), order_out), gap) = out;
            // The lowest bits of a trace's number count traces.
            let recent = self
                .recent
                .get_mut(to_usize(trace.cast_unsigned()) % RECENT)?;
            let is_it = |slot: &Slot| slot.open && slot.trace == *trace;
            if !self.slots.get(usize::from(*recent)).is_some_and(is_it) {
                let at = self.slots.iter().position(is_it);
                let at = at.unwrap_or_else(|| {
                    let free = self.slots.iter().position(|slot| !slot.open);
                    let at = free.unwrap_or_else(|| {
                        self.slots.push(Slot::new(*end));
                        self.slots.len() - 1
                    });
                    if let Some(slot) = self.slots.get_mut(at) {
                        slot.begin(*trace, *session);
                    }
                    self.traces.push(*trace);
                    self.sessions.push(*session);
                    at
                });
                if at >= MAX_SLOTS || self.traces.len() > most_traces {
                    return None;
                }
                *recent = u8::try_from(at).ok()?;
            }
            let slot = self.slots.get_mut(usize::from(*recent))?;
            *place = *recent;
            one_session &= slot.session == *session;
            *step = slot.step(*depth);
            let expected = slot.expect(*step);
            *order_out = order.wrapping_sub(expected.order);
            *gap = expected.gap(*begin);
            slot.add(*depth, *order, *begin, *end);
        }
        Some(one_session)
    }
}
