//! Tables of executions, read.

use super::nesting::MAX_SLOTS;
use super::place::{Place, Told};
use super::shallow::{self, Beginnings, Shallow};
use super::{SESSION_OF_ROW, SESSION_OF_TRACE, field};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::native::columnar::columns::{self, ColumnDecoder};
use crate::container::native::columnar::ints::{Scope, Sign, unsigned};
use crate::container::native::columnar::vectors;
use crate::container::native::decode::KEPT_BYTES;
use crate::container::num::{to_u64, to_usize};
use crate::record::Column;

/// Called behind each column with the field that it belongs to.
pub(in crate::container::native::columnar) trait Note:
    FnMut(&mut ColumnDecoder<'_>, usize, usize)
{
}

impl<F: FnMut(&mut ColumnDecoder<'_>, usize, usize)> Note for F {}

/// Reads the columns of so many rows: those of the fields, in their order.
pub(in crate::container::native::columnar) fn read(
    decoder: &mut ColumnDecoder<'_>,
    cursor: &mut Cursor<'_>,
    rows: usize,
    mut note: impl Note,
) -> Result<Vec<Column>, DecodeError> {
    let reading = "calls";
    let at = cursor.clone();
    // Beside its columns a row has four numbers that are no field.
    decoder.ints.charge(&at, rows, ROW_BYTES, reading)?;
    let count = cursor.count(rows, "the number of traces")?;
    let mut part = |decoder: &mut ColumnDecoder<'_>, start: usize, at: usize, field: usize| {
        note(decoder, field, at - start);
    };

    let start = cursor.offset();
    let operations = decoder.string_ids(cursor, rows)?;
    part(decoder, start, cursor.offset(), field::OPERATION);
    let start = cursor.offset();
    let hosts = decoder.string_ids(cursor, rows)?;
    part(decoder, start, cursor.offset(), field::HOST);

    let start = cursor.offset();
    let new_traces = signed(decoder, cursor, count)?;
    part(decoder, start, cursor.offset(), field::TRACE);
    let start = cursor.offset();
    let kind_at = cursor.clone();
    let (new_sessions, mut sessions) = match cursor.u8("the sessions' kind")? {
        SESSION_OF_TRACE => (decoder.string_ids(cursor, count)?, Vec::new()),
        SESSION_OF_ROW => (Vec::new(), decoder.string_ids(cursor, rows)?),
        found => {
            let found = found.into();
            let kind = DecodeErrorKind::Invalid { found };
            return Err(kind_at.error("the sessions' kind", kind));
        }
    };
    let of_trace = !new_sessions.is_empty();
    part(decoder, start, cursor.offset(), field::SESSION);

    let start = cursor.offset();
    let most = to_u64(MAX_SLOTS) - 1;
    let places = decoder.narrow(cursor, rows, most, "the places of traces")?;
    part(decoder, start, cursor.offset(), field::TRACE);
    let told_at = cursor.clone();
    let start = cursor.offset();
    let depths = signed(decoder, cursor, rows)?;
    part(decoder, start, cursor.offset(), field::ESS);
    let start = cursor.offset();
    let orders = signed(decoder, cursor, rows)?;
    part(decoder, start, cursor.offset(), field::EOI);
    let start = cursor.offset();
    let ends = signed(decoder, cursor, rows)?;
    part(decoder, start, cursor.offset(), field::TOUT);
    let start = cursor.offset();
    let begins = signed(decoder, cursor, rows)?;
    part(decoder, start, cursor.offset(), field::TIN);

    if of_trace {
        sessions = decoder.ints.spare.narrow(rows);
    }
    // Or-ed together they are no smaller than the largest.
    let most = vectors::wide(
        #[inline(always)]
        || places.iter().fold(0, |most, place| most | place),
    );
    let most = to_usize(most.into()) + 1;
    let place_bytes = size_of::<Place>().max(size_of::<Shallow>());
    decoder.ints.charge(&at, most, place_bytes, reading)?;
    let beginnings = Beginnings {
        traces: new_traces.iter(),
        sessions: new_sessions.iter(),
    };
    let mut table = Rows {
        places,
        ends,
        depths,
        orders,
        begins,
        traces: columns::signed(decoder.ints.spare.wide(rows)),
    };
    // Nearly all tables are shallow.
    let followed = if of_trace {
        shallow::follow(
            &mut table,
            &mut sessions,
            most,
            beginnings.clone(),
            decoder.calls,
        )
    } else {
        // Each row has its own.
        shallow::follow(
            &mut table,
            &mut vec![NoSession; rows],
            most,
            beginnings.clone(),
            decoder.calls,
        )
    };
    let left = if let Some(left) = followed {
        left
    } else {
        // What was told is read once more, into the memory in which it was charged.
        let again = &mut told_at.clone();
        let ends = &mut Vec::new();
        for told in [
            &mut table.depths,
            &mut table.orders,
            ends,
            &mut table.begins,
        ] {
            *told = Vec::new();
            *told = numbers(decoder, again, rows)?;
        }
        decoder.ints.take_trace();
        let follower = Follower {
            places: Vec::with_capacity(most),
            beginnings,
        };
        let left = if of_trace {
            follower.follow(&mut table, &mut sessions)
        } else {
            follower.follow(&mut table, &mut vec![NoSession; rows])
        };
        let invalid = |found| DecodeErrorKind::Invalid { found };
        let left = left.map_err(|found| at.error("the places of traces", invalid(found)))?;
        for numbers in [&table.orders, &table.depths] {
            if let Some(found) = columns::outside(numbers, i32::MIN.into(), i32::MAX.into()) {
                return Err(at.error(reading, invalid(found)));
            }
        }
        left
    };
    if left > 0 {
        let kind = DecodeErrorKind::Length {
            declared: to_u64(count),
            found: to_u64(count - left),
        };
        return Err(at.error("the number of traces", kind));
    }
    // What does not leave is there for the next chunk.
    let spare = &mut *decoder.ints.spare;
    spare.add_wide(unsigned(new_traces), KEPT_BYTES);
    spare.add_narrow(new_sessions, KEPT_BYTES);
    spare.add_narrow(table.places, KEPT_BYTES);
    Ok(vec![
        Column::String(operations),
        Column::String(sessions),
        Column::Signed(table.traces),
        Column::Signed(table.begins),
        Column::Signed(table.ends),
        Column::String(hosts),
        Column::Signed(table.orders),
        Column::Signed(table.depths),
    ])
}

/// The columns from which rows follow, and in the same memory what follows: steps become depths,
/// and so on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    pub(super) places: Vec<u32>,
    pub(super) ends: Vec<i64>,
    pub(super) depths: Vec<i64>,
    pub(super) orders: Vec<i64>,
    pub(super) begins: Vec<i64>,
    pub(super) traces: Vec<i64>,
}

/// Takes the session of a row's trace.
pub(super) trait Session {
    fn set(&mut self, session: u32);

    /// As [`Self::set`], of as many rows as there are sessions.
    fn set_all(to: &mut [Self], sessions: &[u32])
    where
        Self: Sized;
}

impl Session for u32 {
    #[inline]
    fn set(&mut self, session: u32) {
        *self = session;
    }

    fn set_all(to: &mut [Self], sessions: &[u32]) {
        to.copy_from_slice(sessions);
    }
}

/// Instead of a session where each row has its own.
#[derive(Clone)]
struct NoSession;

impl Session for NoSession {
    #[inline]
    fn set(&mut self, _session: u32) {}

    fn set_all(_to: &mut [Self], _sessions: &[u32]) {}
}

/// Follows the rows of any table.
pub(super) struct Follower<'a> {
    /// Those that had a row.
    pub(super) places: Vec<Place>,
    pub(super) beginnings: Beginnings<'a>,
}

impl Follower<'_> {
    /// Row by row; returns how many traces have not begun. The error is what it was that there is
    /// not: a place, or another trace.
    ///
    /// A function of its own, whose loop has all registers.
    #[inline(never)]
    pub(super) fn follow<S: Session>(
        mut self,
        rows: &mut Rows,
        sessions: &mut [S],
    ) -> Result<usize, u64> {
        let Rows {
            places,
            ends,
            depths,
            orders,
            begins,
            traces,
        } = rows;
        let told = places.iter().zip(ends.iter());
        let rows = depths.iter_mut().zip(orders).zip(begins);
        let rows = rows.zip(traces).zip(sessions);
        for ((number, end), ((((depth, order), begin), trace), session)) in told.zip(rows) {
            let number = to_usize((*number).into());
            let found = self.places.get(number);
            let mut before = *depth == 0;
            if found.is_none_or(Place::is_free) {
                before = self.begin(number, *end)?;
            }
            let place = self.places.get_mut(number).ok_or_else(|| to_u64(number))?;
            let row = place.follow(Told {
                step: *depth,
                order: *order,
                end: *end,
                gap: *begin,
                before,
            });
            (*depth, *order, *begin) = (row.depth, row.order, row.begin);
            *trace = place.trace;
            session.set(place.session);
        }
        Ok(self.beginnings.traces.len())
    }

    /// Begins a trace in a place whose next row ends then; says whether it is the first one there.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, number: usize, end: i64) -> Result<bool, u64> {
        let first = number == self.places.len();
        if first {
            self.places.push(Place::new(end));
        }
        let place = self.places.get_mut(number).ok_or_else(|| to_u64(number))?;
        let trace = self.beginnings.traces.next();
        let trace = trace.ok_or_else(|| to_u64(number))?;
        let session = self.beginnings.sessions.next();
        place.begin(*trace, session.copied().unwrap_or(0));
        Ok(first)
    }
}

/// What a row takes while it is read: five numbers of 64 bits, a place, and three strings are
/// charged where they are read.
const ROW_BYTES: usize = 2 * size_of::<i64>();

fn signed(
    decoder: &mut ColumnDecoder<'_>,
    cursor: &mut Cursor<'_>,
    count: usize,
) -> Result<Vec<i64>, DecodeError> {
    let at = cursor.clone();
    let each = size_of::<i64>();
    decoder.ints.charge(&at, count, each, READING)?;
    numbers(decoder, cursor, count)
}

/// As [`signed`], into memory that was charged.
fn numbers(
    decoder: &mut ColumnDecoder<'_>,
    cursor: &mut Cursor<'_>,
    count: usize,
) -> Result<Vec<i64>, DecodeError> {
    let scope = Scope {
        sign: Sign::Signed,
        ticks: false,
        earlier: &[],
    };
    let (lanes, _) = decoder.ints.wide(cursor, count, scope, READING)?;
    Ok(columns::signed(lanes))
}

const READING: &str = "a column of calls";
