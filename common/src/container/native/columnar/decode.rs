//! Columnar bodies to batches.

use std::sync::Arc;

use super::ints::{IntDecoder, Scope, Sign};
use super::{BYTES_PLAIN, strings, types};
use crate::container::cursor::Cursor;
use crate::container::decoder::{ColumnLayout, Layout};
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::limits::Budget;
use crate::container::native::formats::BodyContext;
use crate::container::num::{to_u64, to_usize};
use crate::record::{
    BytesColumn, Column, FieldType, ListColumn, OptionalColumn, RecordBatch, RecordColumn, Schema,
    Table,
};

/// What a value costs the budget at least, also where it takes no memory of its own: a record
/// without fields in a list must not be repeated four billion times.
const LEAST_VALUE_BYTES: usize = 1;

/// Decodes a body; nothing may follow it.
pub(in crate::container::native) fn decode(
    body: &[u8],
    context: &mut BodyContext<'_>,
) -> Result<RecordBatch, DecodeError> {
    let head = context.head;
    let budget = Budget::new(context.limits.decoded_bytes);
    let trace = context.layout.is_some();
    let mut decoder = Decoder {
        ints: IntDecoder::new(budget, context.lanes, head.header.clock, trace),
        strings: head.strings,
    };
    let mut layout = Layout::default();
    let cursor = &mut Cursor::in_body(body);

    let mut schemas = Vec::new();
    for _ in 0..head.types {
        schemas.push(types::read(cursor, decoder.ints.budget())?);
    }
    layout.schema_bytes = cursor.offset();
    let strings = strings::read(cursor, head.strings, &mut decoder.ints)?;
    layout.string_bytes = cursor.offset() - layout.schema_bytes;

    let at = cursor.clone();
    let order = decoder.order(cursor, &schemas, head.records)?;
    layout.order_bytes = cursor.offset() - at.offset();

    let mut tables = Vec::with_capacity(schemas.len());
    for schema in schemas {
        let section = &mut cursor.section("a table")?;
        tables.push(decoder.table(section, schema, head.records, &mut layout)?);
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

/// Every table must have as many rows as the order names it, all together as many as the header
/// says.
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
        if let Some(count) = counts.get_mut(to_usize((*table).into())) {
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

struct Decoder<'a> {
    ints: IntDecoder<'a>,
    strings: usize,
}

impl Decoder<'_> {
    /// For each record its type, if there are several.
    fn order(
        &mut self,
        cursor: &mut Cursor<'_>,
        schemas: &[Arc<Schema>],
        records: usize,
    ) -> Result<Vec<u32>, DecodeError> {
        if schemas.len() < 2 {
            return Ok(Vec::new());
        }
        let limit = to_u64(schemas.len()) - 1;
        self.narrow(cursor, records, limit, "the order of types")
    }

    fn table(
        &mut self,
        cursor: &mut Cursor<'_>,
        schema: Arc<Schema>,
        records: usize,
        layout: &mut Layout,
    ) -> Result<Table, DecodeError> {
        let at = cursor.clone();
        let rows = cursor.count(records, "the number of rows")?;
        if rows == 0 {
            let kind = DecodeErrorKind::Invalid { found: 0 };
            return Err(at.error("the number of rows", kind));
        }
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let start = cursor.offset();
            let column = self.column(cursor, field.field_type(), rows, &columns)?;
            columns.push(column);
            let bytes = cursor.offset() - start;
            self.note(layout, &schema, field.name(), bytes);
        }
        let start = cursor.offset();
        let reading = "the timestamps";
        self.ints.charge(cursor, rows, size_of::<i64>(), reading)?;
        let scope = Scope {
            sign: Sign::Signed,
            ticks: true,
            earlier: &columns,
        };
        let lanes = self.ints.read(cursor, rows, scope, reading)?;
        let timestamps = lanes.iter().map(|lane| lane.cast_signed()).collect();
        let bytes = cursor.offset() - start;
        self.note(layout, &schema, "(timestamp)", bytes);
        Ok(Table {
            schema,
            timestamps,
            columns,
        })
    }

    fn note(&mut self, layout: &mut Layout, schema: &Schema, field: &str, bytes: usize) {
        if let Some(encodings) = self.ints.take_trace() {
            layout.columns.push(ColumnLayout {
                record: schema.name().into(),
                field: field.into(),
                encoding: encodings.join(", ").into(),
                bytes,
            });
        }
    }

    /// Reads a column of so many values; `earlier` are the columns of the same table that it may
    /// refer to. Recursion is bounded by the depth of the schema, which was checked.
    fn column(
        &mut self,
        cursor: &mut Cursor<'_>,
        field_type: &FieldType,
        count: usize,
        earlier: &[Column],
    ) -> Result<Column, DecodeError> {
        self.ints
            .charge(cursor, count, LEAST_VALUE_BYTES, "a column")?;
        Ok(match field_type {
            FieldType::Bool => {
                let lanes = self.lanes(cursor, count, 1, size_of::<bool>(), "a column of bools")?;
                Column::Bool(lanes.iter().map(|lane| *lane != 0).collect())
            }
            FieldType::I8 => self.signed(cursor, count, i8::MIN.into(), i8::MAX.into())?,
            FieldType::I16 => self.signed(cursor, count, i16::MIN.into(), i16::MAX.into())?,
            FieldType::I32 => self.signed(cursor, count, i32::MIN.into(), i32::MAX.into())?,
            FieldType::I64 => {
                let lanes = self.wide(cursor, count, Sign::Signed, earlier)?;
                Column::Signed(lanes.iter().map(|lane| lane.cast_signed()).collect())
            }
            FieldType::U8 => self.unsigned(cursor, count, u8::MAX.into())?,
            FieldType::U16 => self.unsigned(cursor, count, u16::MAX.into())?,
            FieldType::U32 => self.unsigned(cursor, count, u32::MAX.into())?,
            FieldType::U64 => {
                let lanes = self.wide(cursor, count, Sign::Unsigned, earlier)?;
                Column::Unsigned(lanes.to_vec())
            }
            FieldType::F32 => {
                let largest = u32::MAX.into();
                Column::F32(self.narrow(cursor, count, largest, "a column of f32")?)
            }
            FieldType::F64 => {
                let reading = "a column of f64";
                let lanes = self.lanes(cursor, count, u64::MAX, size_of::<u64>(), reading)?;
                Column::F64(lanes.to_vec())
            }
            FieldType::Char => self.chars(cursor, count)?,
            FieldType::String => {
                let reading = "a column of strings";
                let Some(largest) = to_u64(self.strings).checked_sub(1) else {
                    return if count == 0 {
                        Ok(Column::String(Vec::new()))
                    } else {
                        // No string can be named where there is none.
                        let kind = DecodeErrorKind::Invalid { found: 0 };
                        Err(cursor.error(reading, kind))
                    };
                };
                Column::String(self.narrow(cursor, count, largest, reading)?)
            }
            FieldType::Enum(enum_type) => {
                let largest = to_u64(enum_type.variants().len()).saturating_sub(1);
                Column::Enum(self.narrow(cursor, count, largest, "a column of variants")?)
            }
            FieldType::Bytes => Column::Bytes(self.bytes(cursor, count)?),
            FieldType::Optional(inner) => self.optional(cursor, inner, count)?,
            FieldType::List(inner) => {
                let (ends, total) = self.ends(cursor, count, "the lengths of lists")?;
                let items = self.column(cursor, inner, total, &[])?;
                Column::List(Box::new(ListColumn { ends, items }))
            }
            FieldType::Record(schema) => {
                let mut fields = Vec::with_capacity(schema.fields().len());
                for field in schema.fields() {
                    fields.push(self.column(cursor, field.field_type(), count, &[])?);
                }
                Column::Record(RecordColumn { len: count, fields })
            }
        })
    }

    /// Values from 0 to `largest`, for a column whose values take `each` bytes in memory.
    fn lanes(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        largest: u64,
        each: usize,
        reading: &'static str,
    ) -> Result<&[u64], DecodeError> {
        let at = cursor.clone();
        self.ints.charge(&at, count, each, reading)?;
        let lanes = self
            .ints
            .read(cursor, count, Scope::plain(Sign::Unsigned), reading)?;
        match lanes.iter().find(|lane| **lane > largest) {
            None => Ok(lanes),
            Some(found) => Err(at.error(reading, DecodeErrorKind::Invalid { found: *found })),
        }
    }

    /// Values from 0 to `largest`, which fit into 32 bits.
    fn narrow(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        largest: u64,
        reading: &'static str,
    ) -> Result<Vec<u32>, DecodeError> {
        let lanes = self.lanes(cursor, count, largest, size_of::<u32>(), reading)?;
        let narrow = |lane: &u64| u32::try_from(*lane).unwrap_or(u32::MAX);
        Ok(lanes.iter().map(narrow).collect())
    }

    fn unsigned(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        largest: u64,
    ) -> Result<Column, DecodeError> {
        let reading = "a column of unsigned integers";
        let lanes = self.lanes(cursor, count, largest, size_of::<u64>(), reading)?;
        Ok(Column::Unsigned(lanes.to_vec()))
    }

    fn signed(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        smallest: i64,
        largest: i64,
    ) -> Result<Column, DecodeError> {
        let reading = "a column of signed integers";
        let at = cursor.clone();
        self.ints.charge(&at, count, size_of::<i64>(), reading)?;
        let lanes = self
            .ints
            .read(cursor, count, Scope::plain(Sign::Signed), reading)?;
        let values: Vec<i64> = lanes.iter().map(|lane| lane.cast_signed()).collect();
        match values
            .iter()
            .find(|value| !(smallest..=largest).contains(value))
        {
            None => Ok(Column::Signed(values)),
            Some(found) => {
                let found = found.cast_unsigned();
                Err(at.error(reading, DecodeErrorKind::Invalid { found }))
            }
        }
    }

    /// Integers of 64 bits, which may be ticks or equal to an earlier column.
    fn wide(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        sign: Sign,
        earlier: &[Column],
    ) -> Result<&[u64], DecodeError> {
        let reading = "a column of integers";
        self.ints.charge(cursor, count, size_of::<u64>(), reading)?;
        let scope = Scope {
            sign,
            ticks: true,
            earlier,
        };
        self.ints.read(cursor, count, scope, reading)
    }

    fn chars(&mut self, cursor: &mut Cursor<'_>, count: usize) -> Result<Column, DecodeError> {
        let reading = "a column of chars";
        let at = cursor.clone();
        let codes = self.narrow(cursor, count, u32::from(char::MAX).into(), reading)?;
        let mut chars = Vec::with_capacity(codes.len());
        for code in codes {
            chars.push(char::from_u32(code).ok_or_else(|| {
                let found = code.into();
                at.error(reading, DecodeErrorKind::Invalid { found })
            })?);
        }
        Ok(Column::Char(chars))
    }

    /// Lengths, as the ends that they add up to, and the last end.
    fn ends(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        reading: &'static str,
    ) -> Result<(Vec<u32>, usize), DecodeError> {
        let at = cursor.clone();
        let largest = u32::MAX.into();
        let mut ends = self.narrow(cursor, count, largest, reading)?;
        let mut total = 0_u32;
        for end in &mut ends {
            let sum = total.checked_add(*end).ok_or_else(|| {
                let found = u64::from(total) + u64::from(*end);
                at.over_limit(reading, found, to_usize(largest))
            })?;
            *end = sum;
            total = sum;
        }
        Ok((ends, to_usize(total.into())))
    }

    fn bytes(&mut self, cursor: &mut Cursor<'_>, count: usize) -> Result<BytesColumn, DecodeError> {
        let reading = "a column of bytes";
        let (ends, total) = self.ends(cursor, count, reading)?;
        if total == 0 {
            let data = Vec::new();
            return Ok(BytesColumn { ends, data });
        }
        let at = cursor.clone();
        let encoding = cursor.u8(reading)?;
        if encoding != BYTES_PLAIN {
            let kind = DecodeErrorKind::Unknown {
                what: "encoding of bytes",
                number: encoding.into(),
            };
            return Err(at.error(reading, kind));
        }
        self.ints.note("plain");
        let mut section = cursor.section(reading)?;
        if section.left() != total {
            let kind = DecodeErrorKind::Length {
                declared: to_u64(total),
                found: to_u64(section.left()),
            };
            return Err(at.error(reading, kind));
        }
        self.ints.charge(&at, total, 1, reading)?;
        let data = section.take_rest().to_vec();
        Ok(BytesColumn { ends, data })
    }

    fn optional(
        &mut self,
        cursor: &mut Cursor<'_>,
        inner: &FieldType,
        count: usize,
    ) -> Result<Column, DecodeError> {
        let reading = "the presence of values";
        let mut positions = self.narrow(cursor, count, 1, reading)?;
        let mut present = 0;
        for position in &mut positions {
            if *position == 0 {
                *position = OptionalColumn::ABSENT;
            } else {
                *position = present;
                present += 1;
            }
        }
        let present = self.column(cursor, inner, to_usize(present.into()), &[])?;
        Ok(Column::Optional(Box::new(OptionalColumn {
            positions,
            present,
        })))
    }
}
