//! Fills a batch row by row.

use std::sync::Arc;

use super::error::PushError;
use super::string_index::StringIndex;
use super::word_rows::{TIME_BYTES, WordRun, WordsOfType};
use super::{RecordBatch, Table, nested};
use crate::record::column::Column;
use crate::record::dynamic::DynamicRecord;
use crate::record::intern::Interned;
use crate::record::reference::RecordRef;
use crate::record::row::RowWriter;
use crate::record::schema::{FieldType, Schema};
use crate::record::{NO_TIMESTAMP, Record};

/// Collects records into a [`RecordBatch`]; reused from chunk to chunk.
#[derive(Debug, Default)]
pub struct BatchBuilder {
    batch: RecordBatch,
    /// By table: how rows of words become its columns; `None` for types that are not flat.
    words: Vec<Option<WordsOfType>>,
    string_index: StringIndex,
    /// Tables of the last batch, kept for their memory.
    spare: Vec<(Table, Option<WordsOfType>)>,
    records: usize,
    row_bytes: usize,
    scratch: Vec<u8>,
}

/// The values of one field in several rows; see [`BatchBuilder::push_columns`].
#[derive(Debug, Clone, Copy)]
pub enum FieldColumn<'a> {
    /// The same string in each row.
    SameString(Interned),
    /// A string for each row.
    Strings(&'a [Interned]),
    /// A number for each row, of a field of type `i32`.
    I32(&'a [i32]),
    /// A number for each row, of a field of type `i64`.
    I64(&'a [i64]),
}

impl FieldColumn<'_> {
    /// Whether it has values of this type for this number of rows.
    fn fits(&self, field_type: &FieldType, rows: usize) -> bool {
        match (self, field_type) {
            (Self::SameString(_), FieldType::String) => true,
            (Self::Strings(strings), FieldType::String) => strings.len() == rows,
            (Self::I32(numbers), FieldType::I32) => numbers.len() == rows,
            (Self::I64(numbers), FieldType::I64) => numbers.len() == rows,
            _ => false,
        }
    }

    /// The estimated bytes of a value: as many as in a row.
    fn value_bytes(&self) -> usize {
        match self {
            Self::SameString(_) | Self::Strings(_) | Self::I32(_) => 4,
            Self::I64(_) => 8,
        }
    }
}

impl BatchBuilder {
    /// Creates an empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// The records so far.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.records
    }

    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Returns the bytes of the rows plus the bytes of the distinct strings. This is an upper
    /// estimate of the encoded size.
    pub fn estimated_bytes(&self) -> usize {
        self.row_bytes + self.batch.strings.text_bytes()
    }

    /// Removes every record, keeping the memory for rows of the same types.
    pub fn clear(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        for table in &mut batch.tables {
            table.timestamps.clear();
            table.columns.iter_mut().for_each(Column::clear);
        }
        self.start_anew(std::mem::take(&mut batch.tables));
        batch.strings.clear();
        batch.order.clear();
        self.batch = batch;
    }

    /// Returns the batch and starts a new one.
    pub fn take(&mut self) -> RecordBatch {
        let batch = std::mem::take(&mut self.batch);
        let tables = batch.tables.iter();
        self.start_anew(tables.map(|table| Table::new(Arc::clone(&table.schema))));
        batch
    }

    /// Clears everything but the batch itself, and keeps these tables for records of their types.
    fn start_anew(&mut self, tables: impl IntoIterator<Item = Table>) {
        // Free the tables of the batch before the last one: the last one had no record of their
        // types.
        self.spare.clear();
        let tables = tables.into_iter().zip(self.words.drain(..));
        self.spare.extend(tables);
        self.string_index.clear();
        self.records = 0;
        self.row_bytes = 0;
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

    /// Adds a record in the form of a [`RowWriter`].
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
        let position = self.table_for(schema);
        let number = u32::try_from(position).map_err(|_| PushError::Full)?;
        let strings = &mut self.batch.strings;
        let table = self.batch.tables.get_mut(position);
        let table = table.ok_or(PushError::Full)?;
        nested::push(table, timestamp, row, strings, &mut self.string_index)?;
        if self.fill_order() {
            self.batch.order.push(number);
        }
        self.records = self.records.wrapping_add(1);
        // A slice has at most half of all possible bytes.
        self.row_bytes += row.len() + TIME_BYTES;
        Ok(())
    }

    /// Adds rows column by column: `columns` has the values of each field, in the order of the
    /// schema. Returns the number of added rows, and the error of the next row.
    ///
    /// # Errors
    ///
    /// See [`PushError`]; columns that do not fit the schema or the number of timestamps are
    /// malformed.
    pub fn push_columns(
        &mut self,
        schema: &Arc<Schema>,
        timestamps: &[i64],
        columns: &[FieldColumn<'_>],
    ) -> (usize, Result<(), PushError>) {
        let position = self.table_for(schema);
        let has_several = self.fill_order();
        let table = self.batch.tables.get_mut(position);
        let (Some(table), Ok(number)) = (table, u32::try_from(position)) else {
            return (0, Err(PushError::Full));
        };
        let (mut rows, mut result) = (timestamps.len(), Ok(()));
        let mut fields = schema.fields().iter().zip(columns);
        if schema.fields().len() != columns.len()
            || !fields.all(|(field, column)| column.fits(field.field_type(), rows))
        {
            return (0, Err(PushError::Malformed));
        }
        let before = table.timestamps.len();
        // First the strings, which alone can be refused: their columns are cut to the rows that all
        // of them have.
        for (to, from) in table.columns.iter_mut().zip(columns) {
            let Column::String(ids) = to else { continue };
            let (index, strings) = (&mut self.string_index, &mut self.batch.strings);
            let added = match from {
                FieldColumn::SameString(string) => index
                    .interned_id(*string, strings)
                    .map(|id| ids.resize(before + rows, id)),
                FieldColumn::Strings(from) => {
                    let from = from.get(..rows).unwrap_or_default();
                    from.chunk_by(|a, b| a == b).try_for_each(|same| {
                        if let Some(string) = same.first() {
                            let id = index.interned_id(*string, strings)?;
                            ids.extend(std::iter::repeat_n(id, same.len()));
                        }
                        Ok(())
                    })
                }
                FieldColumn::I32(_) | FieldColumn::I64(_) => Ok(()),
            };
            if let Err(error) = added {
                (rows, result) = (ids.len() - before, Err(error));
            }
        }
        for (to, from) in table.columns.iter_mut().zip(columns) {
            match (to, from) {
                (Column::String(ids), _) => ids.truncate(before + rows),
                (Column::Signed(to), FieldColumn::I32(from)) => {
                    to.extend(from.iter().take(rows).map(|number| i64::from(*number)));
                }
                (Column::Signed(to), FieldColumn::I64(from)) => to.extend(from.iter().take(rows)),
                // `fits` has refused all others.
                _ => {}
            }
        }
        table.timestamps.extend(timestamps.iter().take(rows));
        self.records += rows;
        if has_several {
            self.batch.order.resize(self.records, number);
        }
        let values = columns.iter().map(FieldColumn::value_bytes);
        let row_bytes = values.sum::<usize>() + TIME_BYTES;
        self.row_bytes += rows * row_bytes;
        (rows, result)
    }

    /// Returns the position of the type's table, and makes the table if the type is new.
    ///
    /// A table stays empty if its first row is refused. Serializers leave empty tables out.
    fn table_for(&mut self, schema: &Arc<Schema>) -> usize {
        let mut tables = self.batch.tables.iter();
        match tables.position(|table| Arc::ptr_eq(&table.schema, schema)) {
            Some(number) => number,
            None => self.find_table(schema),
        }
    }

    /// Returns the position of the table of an equal type, or of a new one.
    #[cold]
    fn find_table(&mut self, schema: &Arc<Schema>) -> usize {
        let tables = &mut self.batch.tables;
        let known = tables.iter().position(|table| {
            table.schema.fingerprint() == schema.fingerprint() && table.schema == *schema
        });
        known.unwrap_or_else(|| {
            let mut spare = self.spare.iter();
            let (table, words) =
                match spare.position(|(table, _)| Arc::ptr_eq(&table.schema, schema)) {
                    Some(position) => self.spare.swap_remove(position),
                    None => (Table::new(Arc::clone(schema)), WordsOfType::new(schema)),
                };
            tables.push(table);
            self.words.push(words);
            tables.len() - 1
        })
    }

    /// Records the tables of the records so far, if the batch has several tables; returns whether
    /// it has.
    fn fill_order(&mut self) -> bool {
        let has_several = self.words.len() > 1;
        if has_several {
            // The records before the second type appeared all have the first type.
            self.batch.order.resize(self.records, 0);
        }
        has_several
    }

    /// Returns a run for rows of words of this type; `None` if the type is not flat.
    pub fn words(&mut self, schema: &Arc<Schema>) -> Option<WordRun<'_>> {
        let number = self.table_for(schema);
        let has_several = self.fill_order();
        Some(WordRun {
            words: self.words.get(number)?.as_ref()?,
            table: self.batch.tables.get_mut(number)?,
            number: u32::try_from(number).ok()?,
            order: has_several.then_some(&mut self.batch.order),
            strings: &mut self.batch.strings,
            index: &mut self.string_index,
            records: &mut self.records,
            row_bytes: &mut self.row_bytes,
        })
    }
}
