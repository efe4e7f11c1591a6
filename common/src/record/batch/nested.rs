//! Takes rows of any shape apart, value by value.

use super::Table;
use super::error::PushError;
use super::string_index::StringIndex;
use crate::record::column::{BytesColumn, Column, OptionalColumn, RecordColumn};
use crate::record::intern::{INTERNED, Interned};
use crate::record::row::RowReader;
use crate::record::schema::FieldType;
use crate::record::strings::StringTable;

/// Adds a row to a table; a refused row leaves nothing in it.
///
/// # Errors
///
/// See [`PushError`].
#[inline(never)]
pub(super) fn push(
    table: &mut Table,
    timestamp: i64,
    row: &[u8],
    strings: &mut StringTable,
    index: &mut StringIndex,
) -> Result<(), PushError> {
    let rows = table.len();
    push_fields(table, row, strings, index).inspect_err(|_| {
        let columns = table.columns.iter_mut();
        columns.for_each(|column| column.truncate(rows));
    })?;
    table.timestamps.push(timestamp);
    Ok(())
}

fn push_fields(
    table: &mut Table,
    row: &[u8],
    strings: &mut StringTable,
    index: &mut StringIndex,
) -> Result<(), PushError> {
    let mut row = RowReader::new(row);
    for (column, field) in table.columns.iter_mut().zip(table.schema.fields()) {
        push_value(column, field.field_type(), &mut row, strings, index)?;
    }
    if row.is_empty() {
        Ok(())
    } else {
        Err(PushError::Malformed)
    }
}

fn push_value(
    column: &mut Column,
    field_type: &FieldType,
    row: &mut RowReader<'_>,
    strings: &mut StringTable,
    index: &mut StringIndex,
) -> Result<(), PushError> {
    match (column, field_type) {
        (Column::Bool(values), FieldType::Bool) => match row.u8()? {
            byte @ (0 | 1) => values.push(byte == 1),
            _ => return Err(PushError::Malformed),
        },
        (Column::Signed(values), FieldType::I8) => values.push(row.i8()?.into()),
        (Column::Signed(values), FieldType::I16) => values.push(row.i16()?.into()),
        (Column::Signed(values), FieldType::I32) => values.push(row.i32()?.into()),
        (Column::Signed(values), FieldType::I64) => values.push(row.i64()?),
        (Column::Unsigned(values), FieldType::U8) => values.push(row.u8()?.into()),
        (Column::Unsigned(values), FieldType::U16) => values.push(row.u16()?.into()),
        (Column::Unsigned(values), FieldType::U32) => values.push(row.u32()?.into()),
        (Column::Unsigned(values), FieldType::U64) => values.push(row.u64()?),
        (Column::F32(values), FieldType::F32) => values.push(row.u32()?),
        (Column::F64(values), FieldType::F64) => values.push(row.u64()?),
        (Column::Char(values), FieldType::Char) => {
            values.push(char::from_u32(row.u32()?).ok_or(PushError::Malformed)?);
        }
        (Column::String(values), FieldType::String) => {
            values.push(string_id(row, strings, index)?);
        }
        (Column::Enum(values), FieldType::Enum(enum_type)) => {
            let number = row.u32()?;
            if enum_type.variant(number).is_none() {
                return Err(PushError::Malformed);
            }
            values.push(number);
        }
        (Column::Bytes(column), FieldType::Bytes) => push_bytes(column, row)?,
        (Column::Optional(column), FieldType::Optional(inner)) => match row.u8()? {
            0 => column.positions.push(OptionalColumn::ABSENT),
            1 => {
                let position = u32::try_from(column.present.len())
                    .ok()
                    .filter(|position| *position != OptionalColumn::ABSENT)
                    .ok_or(PushError::Full)?;
                push_value(&mut column.present, inner, row, strings, index)?;
                column.positions.push(position);
            }
            _ => return Err(PushError::Malformed),
        },
        (Column::List(column), FieldType::List(inner) | FieldType::Map(inner)) => {
            for _ in 0..row.u32()? {
                push_value(&mut column.items, inner, row, strings, index)?;
            }
            column
                .ends
                .push(u32::try_from(column.items.len()).map_err(|_| PushError::Full)?);
        }
        (Column::Record(RecordColumn { len, fields }), FieldType::Record(schema)) => {
            for (column, field) in fields.iter_mut().zip(schema.fields()) {
                push_value(column, field.field_type(), row, strings, index)?;
            }
            *len += 1;
        }
        _ => return Err(PushError::Malformed),
    }
    Ok(())
}

fn push_bytes(column: &mut BytesColumn, row: &mut RowReader<'_>) -> Result<(), PushError> {
    let length = row.u32()?;
    let bytes = row.take(length)?;
    let end = column
        .data
        .len()
        .checked_add(bytes.len())
        .ok_or(PushError::Full)?;
    column
        .ends
        .push(u32::try_from(end).map_err(|_| PushError::Full)?);
    column.data.extend_from_slice(bytes);
    Ok(())
}

/// Returns the id of the next string in the row.
fn string_id(
    row: &mut RowReader<'_>,
    strings: &mut StringTable,
    index: &mut StringIndex,
) -> Result<u32, PushError> {
    let tag = row.u32()?;
    if tag & INTERNED != 0 {
        let handle = Interned::from_number(tag & !INTERNED);
        return index.interned_id(handle, strings);
    }
    index.id(row.take(tag)?, strings)
}
