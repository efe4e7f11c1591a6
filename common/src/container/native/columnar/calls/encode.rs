//! Writes tables of executions.

use super::{LAYOUT, MAX_PLACES, Place, SESSION_OF_ROW, SESSION_OF_TRACE, field};
use crate::container::native::columnar::ints::{IntEncoder, Sign, write_reference};
use crate::container::varint;
use crate::number::{to_u64, to_usize};
use crate::record::{Column, Table};

/// The layout does not pay with fewer rows.
const LEAST_ROWS: usize = 8;

/// The number of traces that can be found by the lowest bits of their ids. These bits count traces.
const RECENT: usize = 64;

/// Writes tables of executions; keeps its memory from chunk to chunk.
#[derive(Debug)]
pub(in crate::container::native::columnar) struct CallEncoder {
    places: Vec<TracePlace>,
    /// The place that may hold a trace, by the lowest bits of its id.
    recent: [usize; RECENT],
    /// The traces in the order of their starts, and their sessions.
    traces: Vec<i64>,
    sessions: Vec<u32>,
    rows: Vec<RowDifference>,
}

impl Default for CallEncoder {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            recent: [0; RECENT],
            traces: Vec::new(),
            sessions: Vec::new(),
            rows: Vec::new(),
        }
    }
}

/// The place of a row, and its difference from the expected row.
#[derive(Debug, Clone, Copy, Default)]
struct RowDifference {
    place: usize,
    step: i64,
    order: i64,
    gap: i64,
}

/// A place, with the last trace in it.
#[derive(Debug)]
struct TracePlace {
    place: Place,
    trace: i64,
    session: u32,
}

impl TracePlace {
    fn has(&self, trace: i64) -> bool {
        self.trace == trace && !self.place.is_free()
    }
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
    /// Appends the table in this layout if its traces nest. Otherwise returns `false` and appends
    /// nothing.
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
        varint::write(out, to_u64(self.traces.len()));
        let ids = |ids: &[u32], ints: &mut IntEncoder, out: &mut Vec<u8>| {
            ints.write(ids.iter().map(|id| u64::from(*id)), Sign::Unsigned, out);
        };
        let numbers = |numbers: &[i64], ints: &mut IntEncoder, out: &mut Vec<u8>| {
            let integers = numbers.iter().map(|number| *number as u64);
            ints.write(integers, Sign::Signed, out);
        };
        ids(calls.operations, ints, out);
        ids(calls.hosts, ints, out);
        numbers(&self.traces, ints, out);
        let (kind, sessions) = if session_of_trace {
            (SESSION_OF_TRACE, self.sessions.as_slice())
        } else {
            (SESSION_OF_ROW, calls.sessions)
        };
        out.push(kind);
        ids(sessions, ints, out);
        let rows = self.rows.iter();
        let places = rows.clone().map(|row| to_u64(row.place));
        ints.write(places, Sign::Unsigned, out);
        let steps = rows.clone().map(|row| row.step as u64);
        ints.write(steps, Sign::Signed, out);
        let orders = rows.clone().map(|row| row.order as u64);
        ints.write(orders, Sign::Signed, out);
        numbers(calls.ends, ints, out);
        ints.write(rows.map(|row| row.gap as u64), Sign::Signed, out);
        if table.timestamps() == calls.ends {
            write_reference(to_u64(field::TOUT), out);
        } else if table.timestamps() == calls.begins {
            write_reference(to_u64(field::TIN), out);
        } else {
            numbers(table.timestamps(), ints, out);
        }
        true
    }

    /// Finds the place of each row and its difference from the expected row. Returns whether each
    /// trace has one session, or `None` if the layout does not pay.
    fn follow(&mut self, calls: &Calls<'_>) -> Option<bool> {
        let rows = calls.ends.len();
        self.places.clear();
        self.recent = [0; RECENT];
        self.traces.clear();
        self.sessions.clear();
        self.rows.resize(rows, RowDifference::default());
        let mut differences = std::mem::take(&mut self.rows);
        let input = calls.traces.iter().zip(calls.sessions).zip(calls.begins);
        let input = input.zip(calls.ends).zip(calls.orders).zip(calls.depths);
        let (mut nests, mut one_session) = (true, true);
        for ((((((trace, session), begin), end), order), depth), to) in input.zip(&mut differences)
        {
            let Some((number, place)) = self.place_of(*trace, *session, *end, rows / 2) else {
                nests = false;
                break;
            };
            one_session &= place.session == *session;
            let place = &mut place.place;
            let step = depth.wrapping_sub(place.depth).wrapping_add(1);
            let expected = place.expect(step);
            place.add(*depth, *order, *begin, *end);
            *to = RowDifference {
                place: number,
                step,
                order: order.wrapping_sub(expected.order),
                gap: expected.gap(*begin),
            };
        }
        self.rows = differences;
        nests.then_some(one_session)
    }

    /// Returns the place of a trace, which may begin there, and its number. Returns `None` if there
    /// are more than `most` traces or too many places.
    fn place_of(
        &mut self,
        trace: i64,
        session: u32,
        end: i64,
        most: usize,
    ) -> Option<(usize, &mut TracePlace)> {
        let slot = to_usize(trace as u64) % RECENT;
        let mut number = *self.recent.get(slot)?;
        let is_recent = self
            .places
            .get(number)
            .is_some_and(|place| place.has(trace));
        if !is_recent {
            let known = self.places.iter().position(|place| place.has(trace));
            let begins = known.is_none();
            let free = || self.places.iter().position(|place| place.place.is_free());
            number = known.or_else(free).unwrap_or(self.places.len());
            if begins && self.traces.len() >= most || number >= MAX_PLACES {
                return None;
            }
            if number == self.places.len() {
                let place = Place::new(end);
                self.places.push(TracePlace {
                    place,
                    trace,
                    session,
                });
            }
            if begins {
                let place = self.places.get_mut(number)?;
                (place.trace, place.session) = (trace, session);
                place.place.begin();
                self.traces.push(trace);
                self.sessions.push(session);
            }
            *self.recent.get_mut(slot)? = number;
        }
        Some((number, self.places.get_mut(number)?))
    }
}
