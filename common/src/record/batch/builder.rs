//! Filling a batch, row by row.

use std::collections::HashMap;
use std::sync::Arc;

use super::column::{BytesColumn, Column, OptionalColumn, RecordColumn};
use super::strings::{StringIndex, StringTable};
use super::{RecordBatch, Table};
use crate::record::dynamic::DynamicRecord;
use crate::record::intern::Interned;
use crate::record::reference::RecordRef;
use crate::record::row::{INTERNED, RowEnds, RowReader, RowWriter};
use crate::record::schema::{FieldType, Fingerprint, Schema};
use crate::record::{NO_TIMESTAMP, Record};

/// Collects records into a [`RecordBatch`]; reused from chunk to chunk.
#[derive(Debug, Default)]
pub struct BatchBuilder {
    batch: RecordBatch,
    index: StringIndex,
    /// Positions in `batch.tables` by fingerprint; more than one only when fingerprints collide.
    tables: HashMap<Fingerprint, Vec<u32>>,
    last_table: Option<u32>,
    row_bytes: usize,
    scratch: Vec<u8>,
}

/// Why a record could not be added; the batch is as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The row does not follow its schema: a hand-written [`Record`] is wrong.
    #[error("the row does not follow its schema")]
    Malformed,
    /// The batch has no room: 4 GiB of strings or bytes, or 4 billion values.
    #[error("the batch is full")]
    Full,
}

impl From<RowEnds> for PushError {
    fn from(RowEnds: RowEnds) -> Self {
        Self::Malformed
    }
}

impl BatchBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was collected so far.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// How many records were collected.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// How many bytes the rows had, plus those of the distinct strings: an upper estimate of
    /// what a serializer will make of them.
    pub fn estimated_bytes(&self) -> usize {
        self.row_bytes
            .saturating_add(self.batch.strings.text_bytes())
    }

    /// Removes every record, keeping the memory for rows of the same types.
    pub fn clear(&mut self) {
        self.batch.strings.clear();
        self.batch.tables.clear();
        self.batch.order.clear();
        self.index.clear();
        self.tables.clear();
        self.last_table = None;
        self.row_bytes = 0;
    }

    /// Gives the batch away and starts anew.
    pub fn take(&mut self) -> RecordBatch {
        let batch = std::mem::take(&mut self.batch);
        self.clear();
        batch
    }

    /// Adds a typed record.
    ///
    /// # Errors
    ///
    /// See [`PushError`].
    pub fn push<R: Record>(&mut self, record: &R) -> Result<(), PushError> {
        let timestamp = record.timestamp().unwrap_or(NO_TIMESTAMP);
        self.push_with(R::schema(), timestamp, |row| record.write_fields(row))
    }

    /// Adds a record whose type is known only at run time.
    ///
    /// # Errors
    ///
    /// See [`PushError`].
    pub fn push_dynamic(&mut self, record: &DynamicRecord) -> Result<(), PushError> {
        self.push_ref(record.as_ref())
    }

    /// Adds a copy of a record of another batch.
    ///
    /// # Errors
    ///
    /// See [`PushError`].
    pub fn push_ref(&mut self, record: RecordRef<'_>) -> Result<(), PushError> {
        let timestamp = record.timestamp().unwrap_or(NO_TIMESTAMP);
        self.push_with(record.schema(), timestamp, |row| record.fields().write(row))
    }

    fn push_with(
        &mut self,
        schema: &Arc<Schema>,
        timestamp: i64,
        write: impl FnOnce(&mut RowWriter<'_>),
    ) -> Result<(), PushError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let mut row = RowWriter::new(&mut scratch);
        write(&mut row);
        let result = if row.is_too_large() {
            Err(PushError::Full)
        } else {
            self.push_row(schema, timestamp, &scratch)
        };
        self.scratch = scratch;
        result
    }

    /// Adds a record as a [`RowWriter`] wrote it.
    ///
    /// `timestamp` is in nanoseconds since the Unix epoch, or [`NO_TIMESTAMP`].
    ///
    /// # Errors
    ///
    /// See [`PushError`].
    pub fn push_row(
        &mut self,
        schema: &Arc<Schema>,
        timestamp: i64,
        row: &[u8],
    ) -> Result<(), PushError> {
        let number = self.table_for(schema)?;
        let before = self.batch.len();
        let RecordBatch {
            strings,
            tables,
            order,
        } = &mut self.batch;
        let index = usize::try_from(number).map_err(|_| PushError::Full)?;
        let several = tables.len() > 1;
        let table = tables.get_mut(index).ok_or(PushError::Full)?;
        let rows = table.len();
        if let Err(error) = push_fields(table, row, strings, &mut self.index) {
            table
                .columns
                .iter_mut()
                .for_each(|column| column.truncate(rows));
            return Err(error);
        }
        table.timestamps.push(timestamp);
        if several {
            // The records before the second type appeared were all of the first.
            order.resize(before, 0);
            order.push(number);
        }
        self.row_bytes = self.row_bytes.saturating_add(row.len()).saturating_add(8);
        Ok(())
    }

    /// The table for this type, made when it is new. A table that stays empty because its first
    /// row was refused does no harm: serializers leave empty tables out.
    fn table_for(&mut self, schema: &Arc<Schema>) -> Result<u32, PushError> {
        let is_it = |tables: &[Table], number: u32| {
            usize::try_from(number)
                .ok()
                .and_then(|index| tables.get(index))
                .is_some_and(|table| Arc::ptr_eq(&table.schema, schema) || table.schema == *schema)
        };
        if let Some(last) = self.last_table
            && is_it(&self.batch.tables, last)
        {
            return Ok(last);
        }
        let numbers = self.tables.entry(schema.fingerprint()).or_default();
        let known = numbers
            .iter()
            .copied()
            .find(|number| is_it(&self.batch.tables, *number));
        let number = match known {
            Some(number) => number,
            None => {
                let number = u32::try_from(self.batch.tables.len()).map_err(|_| PushError::Full)?;
                self.batch.tables.push(Table::new(Arc::clone(schema)));
                numbers.push(number);
                number
            }
        };
        self.last_table = Some(number);
        Ok(number)
    }
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
        (Column::List(column), FieldType::List(inner)) => {
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
            *len = len.saturating_add(1);
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
