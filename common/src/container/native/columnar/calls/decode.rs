//! Tables of executions, read.

use std::slice::Iter;

use super::nesting::MAX_SLOTS;
use super::place::{Place, Told};
use super::{SESSION_OF_ROW, SESSION_OF_TRACE, field};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::native::columnar::columns::{self, ColumnDecoder};
use crate::container::native::columnar::ints::{Scope, Sign};
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
    let start = cursor.offset();
    let mut depths = signed(decoder, cursor, rows)?;
    part(decoder, start, cursor.offset(), field::ESS);
    let start = cursor.offset();
    let mut orders = signed(decoder, cursor, rows)?;
    part(decoder, start, cursor.offset(), field::EOI);
    let start = cursor.offset();
    let ends = signed(decoder, cursor, rows)?;
    part(decoder, start, cursor.offset(), field::TOUT);
    let start = cursor.offset();
    let mut begins = signed(decoder, cursor, rows)?;
    part(decoder, start, cursor.offset(), field::TIN);

    let mut traces = vec![0; rows];
    if of_trace {
        sessions.resize(rows, 0);
    }
    // Or-ed together they are no smaller than the largest.
    let most = places.iter().fold(0, |most, place| most | place);
    let most = to_usize(most.into()) + 1;
    decoder
        .ints
        .charge(&at, most, size_of::<Place>(), reading)?;
    let follower = Follower {
        places: Vec::with_capacity(most),
        new_traces: new_traces.iter(),
        new_sessions: new_sessions.iter(),
    };
    let rows = Rows {
        places: &places,
        ends: &ends,
        depths: &mut depths,
        orders: &mut orders,
        begins: &mut begins,
        traces: &mut traces,
    };
    let left = if of_trace {
        follower.follow(rows, &mut sessions)
    } else {
        // Each row has its own.
        follower.follow(rows, &mut vec![NoSession; places.len()])
    };
    let left =
        left.map_err(|found| at.error("the places of traces", DecodeErrorKind::Invalid { found }))?;
    if left > 0 {
        let kind = DecodeErrorKind::Length {
            declared: to_u64(count),
            found: to_u64(count - left),
        };
        return Err(at.error("the number of traces", kind));
    }
    for numbers in [&orders, &depths] {
        if let Some(found) = columns::outside(numbers, i32::MIN.into(), i32::MAX.into()) {
            return Err(at.error(reading, DecodeErrorKind::Invalid { found }));
        }
    }
    Ok(vec![
        Column::String(operations),
        Column::String(sessions),
        Column::Signed(traces),
        Column::Signed(begins),
        Column::Signed(ends),
        Column::String(hosts),
        Column::Signed(orders),
        Column::Signed(depths),
    ])
}

/// The columns from which rows follow, and in the same memory what follows: steps become depths,
/// and so on.
struct Rows<'a> {
    places: &'a [u32],
    ends: &'a [i64],
    depths: &'a mut [i64],
    orders: &'a mut [i64],
    begins: &'a mut [i64],
    traces: &'a mut [i64],
}

/// Takes the session of a row's trace.
trait Session {
    fn set(&mut self, session: u32);
}

impl Session for u32 {
    #[inline]
    fn set(&mut self, session: u32) {
        *self = session;
    }
}

/// Instead of a session where each row has its own.
#[derive(Clone)]
struct NoSession;

impl Session for NoSession {
    #[inline]
    fn set(&mut self, _session: u32) {}
}

/// Follows the rows of a table.
struct Follower<'a> {
    /// Those that had a row.
    places: Vec<Place>,
    new_traces: Iter<'a, i64>,
    new_sessions: Iter<'a, u32>,
}

impl Follower<'_> {
    /// Row by row; returns how many traces have not begun. The error is what it was that there is
    /// not: a place, or another trace.
    ///
    /// A function of its own, whose loop has all registers.
    #[inline(never)]
    fn follow<S: Session>(mut self, rows: Rows<'_>, sessions: &mut [S]) -> Result<usize, u64> {
        let Rows {
            places,
            ends,
            depths,
            orders,
            begins,
            traces,
        } = rows;
        let told = places.iter().zip(ends);
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
        Ok(self.new_traces.len())
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
        let trace = self.new_traces.next().ok_or_else(|| to_u64(number))?;
        place.begin(*trace, self.new_sessions.next().copied().unwrap_or(0));
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
    let reading = "a column of calls";
    let at = cursor.clone();
    decoder.ints.charge(&at, count, size_of::<i64>(), reading)?;
    let scope = Scope {
        sign: Sign::Signed,
        ticks: false,
        earlier: &[],
    };
    let (lanes, _) = decoder.ints.wide(cursor, count, scope, reading)?;
    Ok(columns::signed(lanes))
}
