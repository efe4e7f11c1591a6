//! Reads tables of executions.

use super::{MAX_PLACES, Place, SESSION_OF_ROW, SESSION_OF_TRACE, field};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::native::columnar::columns::{self, ColumnDecoder};
use crate::container::native::columnar::ints::{Scope, Sign};
use crate::number::{to_u64, to_usize};
use crate::record::Column;

/// Called after each column with the field to which it belongs.
pub(in crate::container::native::columnar) trait Note:
    FnMut(&mut ColumnDecoder<'_>, usize, usize)
{
}

impl<F: FnMut(&mut ColumnDecoder<'_>, usize, usize)> Note for F {}

/// Reads `rows` rows; returns the columns of the fields, in their order.
pub(in crate::container::native::columnar) fn read(
    decoder: &mut ColumnDecoder<'_>,
    cursor: &mut Cursor<'_>,
    rows: usize,
    mut note: impl Note,
) -> Result<Vec<Column>, DecodeError> {
    let reading = "calls";
    let at = cursor.clone();
    // In addition to its columns a row has four numbers that are not fields.
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
    part(decoder, start, cursor.offset(), field::SESSION);

    let start = cursor.offset();
    let most = to_u64(MAX_PLACES) - 1;
    let places = decoder
        .ints
        .narrow(cursor, rows, most, "the places of traces")?;
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

    let most = places.iter().fold(0, |all, place| all | place);
    let most = to_usize(most) + 1;
    decoder
        .ints
        .charge(&at, most, size_of::<TracePlace>(), reading)?;
    if sessions.is_empty() {
        sessions = vec![0; rows];
    }
    let mut traces = vec![0_i64; rows];
    let mut begun = new_traces.iter();
    let mut begun_sessions = new_sessions.iter();
    let mut in_use: Vec<TracePlace> = Vec::with_capacity(most);
    let invalid = |found| DecodeErrorKind::Invalid { found };
    // Steps become depths in the same memory, and so on for the others.
    let differences = depths.iter_mut().zip(&mut orders).zip(&mut begins);
    let found = traces.iter_mut().zip(&mut sessions);
    let rows = places.iter().zip(&ends).zip(differences).zip(found);
    for (((number, end), ((depth, order), begin)), (trace, session)) in rows {
        let index = to_usize(*number);
        if index == in_use.len() {
            in_use.push(TracePlace::new(*end));
        }
        let no_place = || at.error("the places of traces", invalid((*number).into()));
        let place = in_use.get_mut(index).ok_or_else(no_place)?;
        if place.place.is_free() {
            place.trace = *begun.next().ok_or_else(no_place)?;
            place.session = begun_sessions.next().copied();
            place.place.begin();
        }
        *trace = place.trace;
        if let Some(of_trace) = place.session {
            *session = of_trace;
        }
        let place = &mut place.place;
        let step = *depth;
        *depth = place.depth.wrapping_add(step).wrapping_sub(1);
        let expected = place.expect(step);
        *order = order.wrapping_add(expected.order);
        *begin = expected.begin(*begin);
        place.add(*depth, *order, *begin, *end);
    }
    for numbers in [&orders, &depths] {
        if let Some(found) = columns::outside(numbers, i32::MIN.into(), i32::MAX.into()) {
            return Err(at.error(reading, invalid(found)));
        }
    }
    let left = begun.len();
    if left > 0 {
        let kind = DecodeErrorKind::Length {
            declared: to_u64(count),
            found: to_u64(count - left),
        };
        return Err(at.error("the number of traces", kind));
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

/// A place, with the last trace in it.
#[derive(Debug)]
struct TracePlace {
    place: Place,
    trace: i64,
    /// `None` where each row has its own session.
    session: Option<u32>,
}

impl TracePlace {
    fn new(end: i64) -> Self {
        Self {
            place: Place::new(end),
            trace: 0,
            session: None,
        }
    }
}

/// The memory of a row beside its columns.
const ROW_BYTES: usize = 2 * size_of::<i64>();

fn signed(
    decoder: &mut ColumnDecoder<'_>,
    cursor: &mut Cursor<'_>,
    count: usize,
) -> Result<Vec<i64>, DecodeError> {
    let scope = Scope::plain(Sign::Signed);
    let integers = decoder
        .ints
        .wide(cursor, count, scope, "a column of calls")?;
    Ok(columns::signed(integers))
}
