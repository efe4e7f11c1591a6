//! Decodes columnar bodies to batches.

use super::columns::{ColumnDecoder, signed};
use super::ints::{IntDecoder, Scope, Sign};
use super::types::{self, ReadType};
use super::{calls, strings};
use crate::container::cursor::Cursor;
use crate::container::decoded::{ColumnLayout, Layout};
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::limits::Budget;
use crate::container::native::decode::BodyContext;
use crate::number::{to_u64, to_usize};
use crate::record::{Field, RecordBatch, Schema, Table};

/// Decodes a body; nothing may follow it.
pub(in crate::container::native) fn decode(
    body: &[u8],
    context: &mut BodyContext<'_>,
) -> Result<RecordBatch, DecodeError> {
    let head = context.head;
    let budget = Budget::new(context.limits.decoded_bytes);
    let trace = context.layout.is_some();
    let mut decoder = ColumnDecoder {
        ints: IntDecoder::new(budget, context.ints, head.header.clock, trace),
        strings: head.strings,
    };
    let mut layout = Layout::default();
    let cursor = &mut Cursor::in_body(body);

    let mut read_types = Vec::new();
    for _ in 0..head.types {
        let read = types::read(cursor, context.well_known, decoder.ints.budget())?;
        read_types.push(read);
    }
    layout.schema_bytes = cursor.offset();
    let strings = strings::read(cursor, head.strings, &mut decoder.ints)?;
    layout.string_bytes = cursor.offset() - layout.schema_bytes;

    let at = cursor.clone();
    let order = order_of(&mut decoder, cursor, read_types.len(), head.records)?;
    layout.order_bytes = cursor.offset() - at.offset();

    let mut tables = Vec::with_capacity(read_types.len());
    for read in read_types {
        let section = &mut cursor.section("a table")?;
        tables.push(table(
            &mut decoder,
            section,
            read,
            head.records,
            &mut layout,
        )?);
        section.finish("a table")?;
    }
    cursor.finish("the body")?;
    check_counts(&at, &tables, &order, head.records)?;

    if let Some(wanted) = context.layout.as_deref_mut() {
        wanted.schema_bytes = layout.schema_bytes;
        wanted.string_bytes = layout.string_bytes;
        wanted.order_bytes = layout.order_bytes;
        wanted.columns = layout.columns;
    }
    Ok(RecordBatch {
        strings,
        tables,
        order,
    })
}

/// Every table must have as many rows as the order contains its number. All rows together must be
/// as many as the header says.
fn check_counts(
    at: &Cursor<'_>,
    tables: &[Table],
    order: &[u32],
    records: usize,
) -> Result<(), DecodeError> {
    let found: usize = tables.iter().map(Table::len).sum();
    if found != records {
        let kind = DecodeErrorKind::Length {
            declared: to_u64(records),
            found: to_u64(found),
        };
        return Err(at.error("the number of records", kind));
    }
    if order.is_empty() {
        return Ok(());
    }
    let mut counts = vec![0_usize; tables.len()];
    for table in order {
        if let Some(count) = counts.get_mut(to_usize(*table)) {
            *count += 1;
        }
    }
    for (count, table) in counts.into_iter().zip(tables) {
        if count != table.len() {
            let kind = DecodeErrorKind::Length {
                declared: to_u64(count),
                found: to_u64(table.len()),
            };
            return Err(at.error("the order of types", kind));
        }
    }
    Ok(())
}

/// Returns the type of each record, if there are several types.
fn order_of(
    decoder: &mut ColumnDecoder<'_>,
    cursor: &mut Cursor<'_>,
    types: usize,
    records: usize,
) -> Result<Vec<u32>, DecodeError> {
    if types < 2 {
        return Ok(Vec::new());
    }
    let limit = to_u64(types) - 1;
    decoder
        .ints
        .narrow(cursor, records, limit, "the order of types")
}

fn table(
    decoder: &mut ColumnDecoder<'_>,
    cursor: &mut Cursor<'_>,
    ReadType { schema, has_calls }: ReadType,
    records: usize,
    layout: &mut Layout,
) -> Result<Table, DecodeError> {
    let at = cursor.clone();
    let mut rows = cursor.count(records, "the number of rows")?;
    let calls = rows == 0 && has_calls;
    if calls {
        let at = cursor.clone();
        let number = cursor.u8("the layout")?;
        if number != calls::LAYOUT {
            let number = number.into();
            let what = "layout";
            return Err(at.error("the layout", DecodeErrorKind::Unknown { what, number }));
        }
        rows = cursor.count(records, "the number of rows")?;
    }
    if rows == 0 {
        let kind = DecodeErrorKind::Invalid { found: 0 };
        return Err(at.error("the number of rows", kind));
    }
    let columns = if calls {
        calls::read(decoder, cursor, rows, |decoder, field, bytes| {
            let field = schema.fields().get(field).map_or("", Field::name);
            note(decoder, layout, &schema, field, bytes);
        })?
    } else {
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let start = cursor.offset();
            let column = decoder.column(cursor, field.field_type(), rows, &columns)?;
            columns.push(column);
            let bytes = cursor.offset() - start;
            note(decoder, layout, &schema, field.name(), bytes);
        }
        columns
    };
    let start = cursor.offset();
    let scope = Scope {
        sign: Sign::Signed,
        ticks: true,
        earlier: &columns,
    };
    let integers = decoder.ints.wide(cursor, rows, scope, "the timestamps")?;
    let timestamps = signed(integers);
    let bytes = cursor.offset() - start;
    note(decoder, layout, &schema, "(timestamp)", bytes);
    Ok(Table {
        schema,
        timestamps,
        columns,
    })
}

fn note(
    decoder: &mut ColumnDecoder<'_>,
    layout: &mut Layout,
    schema: &Schema,
    field: &str,
    bytes: usize,
) {
    if let Some(encodings) = decoder.ints.take_trace() {
        layout.columns.push(ColumnLayout {
            record: schema.name().into(),
            field: field.into(),
            encoding: encodings.join(", ").into(),
            bytes,
        });
    }
}
