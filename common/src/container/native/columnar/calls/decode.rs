//! Tables of executions, read.

use super::nesting::{MAX_SLOTS, Slot};
use super::{SESSION_OF_ROW, SESSION_OF_TRACE, field};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::native::columnar::columns::ColumnDecoder;
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

    // What was read are steps and differences; each becomes what it stands for.
    let mut traces = vec![0; rows];
    if of_trace {
        sessions.resize(rows, 0);
    }
    let mut slots: Vec<Slot> = Vec::new();
    let mut new = new_traces.iter();
    let mut new_session = new_sessions.iter();
    let input = places.iter().zip(&ends);
    let output = depths.iter_mut().zip(&mut orders).zip(&mut begins);
    let output = output.zip(&mut traces);
    let mut sessions_out = sessions.iter_mut();
    for ((place, end), (((depth, order), begin), trace)) in input.zip(output) {
        let place = to_usize((*place).into());
        if place == slots.len() {
            slots.push(Slot::new(*end));
        }
        let invalid = |found| at.error("the places of traces", DecodeErrorKind::Invalid { found });
        let slot = slots.get_mut(place).ok_or_else(|| invalid(to_u64(place)))?;
        if !slot.open {
            let trace = new.next().ok_or_else(|| invalid(to_u64(count)))?;
            slot.begin(*trace, new_session.next().copied().unwrap_or(0));
        }
        let step = *depth;
        *depth = slot.depth(step);
        let expected = slot.expect(step);
        *order = order.wrapping_add(expected.order);
        *begin = expected.begin(*begin);
        *trace = slot.trace;
        if of_trace && let Some(session) = sessions_out.next() {
            *session = slot.session;
        }
        slot.add(*depth, *order, *begin, *end);
    }
    let left = new.len();
    if left > 0 {
        let kind = DecodeErrorKind::Length {
            declared: to_u64(count),
            found: to_u64(count - left),
        };
        return Err(at.error("the number of traces", kind));
    }
    for numbers in [&orders, &depths] {
        let narrow = i64::from(i32::MIN)..=i64::from(i32::MAX);
        if let Some(found) = numbers.iter().find(|number| !narrow.contains(number)) {
            let found = found.cast_unsigned();
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
    let lanes = decoder.ints.read(cursor, count, scope, reading)?;
    Ok(lanes.iter().map(|lane| lane.cast_signed()).collect())
}
