//! Filling a batch, row by row.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::column::Column;
use super::flat::FlatRows;
use super::string_index::StringIndex;
use super::strings::StringTable;
use super::type_index::TypeIndex;
use super::word_rows::WordRun;
use super::{RecordBatch, Table, nested};
use crate::record::dynamic::DynamicRecord;
use crate::record::intern::Interned;
use crate::record::reference::RecordRef;
use crate::record::row::{RowEnds, RowWriter};
use crate::record::schema::Schema;
use crate::record::{NO_TIMESTAMP, Record};

/// How many bytes a record's timestamp is counted as.
pub(super) const TIME_BYTES: usize = 8;

/// Collects records into a [`RecordBatch`]; reused from chunk to chunk.
#[derive(Debug, Default)]
pub struct BatchBuilder {
    /// What is being filled; locked only by who looks at it, see [`BatchBuilder::batch`].
    filling: Mutex<Filling>,
    /// The batch, taken out of `filling` to be looked at, until the next change.
    looked_at: OnceLock<RecordBatch>,
    strings: StringIndex,
    types: TypeIndex,
    /// Tables of the batch before, for their memory.
    spare: Vec<(Table, Option<FlatRows>)>,
    records: usize,
    row_bytes: usize,
    scratch: Vec<u8>,
}

/// A batch and the rows of its flat types that are not in its columns yet.
#[derive(Debug, Default)]
struct Filling {
    batch: RecordBatch,
    /// One a table; nothing for types that are not flat.
    rows: Vec<Option<FlatRows>>,
}

impl Filling {
    /// The position of a type's table, made when it is new. A table that stays empty because its
    /// first row is refused does no harm: serializers leave empty tables out.
    #[cold]
    fn table_for(
        &mut self,
        schema: &Arc<Schema>,
        types: &mut TypeIndex,
        spare: &mut Vec<(Table, Option<FlatRows>)>,
    ) -> usize {
        if let Some(known) = types.find(schema, &self.batch.tables) {
            return known;
        }
        let number = self.batch.tables.len();
        let is_it = |(table, _): &(Table, _)| Arc::ptr_eq(&table.schema, schema);
        let (table, rows) = match spare.iter().position(is_it) {
            Some(position) => spare.swap_remove(position),
            None => (Table::new(Arc::clone(schema)), FlatRows::new(schema)),
        };
        self.batch.tables.push(table);
        self.rows.push(rows);
        types.add(schema, number);
        number
    }

    /// Goes on with the batch after somebody looked at it.
    #[cold]
    fn take_back(&mut self, looked_at: &mut OnceLock<RecordBatch>) {
        self.batch = looked_at.take().unwrap_or_default();
    }

    /// Says to which table a record belongs that was added after so many others.
    #[inline(never)]
    fn keep_order(&mut self, number: usize, before: usize) {
        // The records before the second type appeared were all of the first.
        self.batch.order.resize(before, 0);
        self.batch
            .order
            .push(u32::try_from(number).unwrap_or(u32::MAX));
    }

    /// Turns all rows into columns.
    fn flush(&mut self) {
        for (table, rows) in self.batch.tables.iter_mut().zip(&mut self.rows) {
            if let Some(rows) = rows {
                rows.flush(table);
            }
        }
    }
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
        self.looked_at.get_or_init(|| {
            let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
            filling.flush();
            std::mem::take(&mut filling.batch)
        })
    }

    /// How many records were collected.
    pub fn len(&self) -> usize {
        self.records
    }

    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// How many bytes the rows had, plus those of the distinct strings: an upper estimate of
    /// what a serializer will make of them.
    pub fn estimated_bytes(&self) -> usize {
        self.row_bytes.saturating_add(self.strings.text_bytes())
    }

    /// Removes every record, keeping the memory for rows of the same types.
    pub fn clear(&mut self) {
        let Filling { batch, rows } = filling(&mut self.filling, &mut self.looked_at);
        batch.strings.clear();
        batch.order.clear();
        // Types that are not in this batch have had no row for a whole one.
        self.spare.clear();
        self.spare
            .extend(batch.tables.drain(..).zip(rows.drain(..)));
        for (table, rows) in &mut self.spare {
            table.timestamps.clear();
            table.columns.iter_mut().for_each(Column::clear);
            if let Some(rows) = rows {
                rows.clear();
            }
        }
        self.forget();
    }

    /// Gives the batch away and starts anew.
    pub fn take(&mut self) -> RecordBatch {
        let filling = filling(&mut self.filling, &mut self.looked_at);
        filling.flush();
        let batch = std::mem::take(&mut filling.batch);
        let tables = batch.tables.iter();
        let tables = tables.map(|table| Table::new(Arc::clone(&table.schema)));
        self.spare.clear();
        self.spare.extend(tables.zip(filling.rows.drain(..)));
        self.forget();
        batch
    }

    /// Starts anew but for the batch.
    fn forget(&mut self) {
        self.strings.clear();
        self.types.clear();
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
        let filling = filling(&mut self.filling, &mut self.looked_at);
        let number = match self.types.recent(schema) {
            Some(number) => number,
            None => filling.table_for(schema, &mut self.types, &mut self.spare),
        };
        let strings = &mut filling.batch.strings;
        match filling.rows.get_mut(number) {
            Some(Some(rows)) => {
                if rows.is_full()
                    && let Some(table) = filling.batch.tables.get_mut(number)
                {
                    rows.make_room(table);
                }
                rows.push(row, timestamp, strings, &mut self.strings)?;
            }
            _ => {
                let table = filling.batch.tables.get_mut(number);
                let table = table.ok_or(PushError::Full)?;
                nested::push(table, timestamp, row, strings, &mut self.strings)?;
            }
        }
        if filling.rows.len() > 1 {
            filling.keep_order(number, self.records);
        }
        self.records = self.records.wrapping_add(1);
        // A slice has at most half of all bytes there can be.
        self.row_bytes = self.row_bytes.saturating_add(row.len() + TIME_BYTES);
        Ok(())
    }
}

/// Adds records of one type, one after the other, to a [`BatchBuilder`]: what is the same for all of
/// them is found once. See [`BatchBuilder::run`].
#[derive(Debug)]
pub struct Run<'a> {
    pub(super) rows: &'a mut FlatRows,
    pub(super) table: &'a mut Table,
    /// The records' table, where records of other types are in the batch.
    pub(super) order: Option<(u32, &'a mut Vec<u32>)>,
    pub(super) strings: &'a mut StringTable,
    pub(super) index: &'a mut StringIndex,
    pub(super) records: &'a mut usize,
    pub(super) row_bytes: &'a mut usize,
}

impl BatchBuilder {
    /// Goes on with records of this type; `None` if its fields have no fixed widths, or if some need
    /// to be checked (bool, char, enum), or if strings lie between them.
    pub fn run(&mut self, schema: &Arc<Schema>) -> Option<Run<'_>> {
        self.run_of(schema, FlatRows::is_unchecked)
    }

    /// Goes on with rows of words of this type; `None` if it is not flat.
    pub fn words(&mut self, schema: &Arc<Schema>) -> Option<WordRun<'_>> {
        self.run_of(schema, |rows| rows.words.is_some())
            .map(WordRun)
    }

    fn run_of(
        &mut self,
        schema: &Arc<Schema>,
        will_do: impl FnOnce(&FlatRows) -> bool,
    ) -> Option<Run<'_>> {
        let filling = filling(&mut self.filling, &mut self.looked_at);
        let number = match self.types.recent(schema) {
            Some(number) => number,
            None => filling.table_for(schema, &mut self.types, &mut self.spare),
        };
        let is_mixed = filling.rows.len() > 1;
        let rows = filling.rows.get_mut(number)?.as_mut()?;
        if !will_do(rows) {
            return None;
        }
        let order = if is_mixed {
            // The records before the second type appeared were all of the first.
            filling.batch.order.resize(self.records, 0);
            Some((u32::try_from(number).ok()?, &mut filling.batch.order))
        } else {
            None
        };
        Some(Run {
            rows,
            table: filling.batch.tables.get_mut(number)?,
            order,
            strings: &mut filling.batch.strings,
            index: &mut self.strings,
            records: &mut self.records,
            row_bytes: &mut self.row_bytes,
        })
    }
}

impl Run<'_> {
    /// The id by which the rows of this batch name a string.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`].
    pub fn string(&mut self, string: Interned) -> Result<u32, PushError> {
        self.index.interned_id(string, self.strings)
    }

    /// Adds a record: `write` writes all fields in order as little-endian bytes, ids of
    /// [`Self::string`] for strings.
    ///
    /// `timestamp` is in nanoseconds since the Unix epoch, or [`NO_TIMESTAMP`].
    ///
    /// # Errors
    ///
    /// [`PushError::Malformed`] if the row has another width, or names a string that is not in the
    /// batch.
    #[inline]
    pub fn push<const BYTES: usize>(
        &mut self,
        timestamp: i64,
        write: impl FnOnce(&mut [u8; BYTES]),
    ) -> Result<(), PushError> {
        if self.rows.is_full() {
            self.rows.make_room(self.table);
        }
        self.rows.push_ids(write, timestamp, self.strings.len())?;
        if let Some((number, order)) = &mut self.order {
            order.push(*number);
        }
        *self.records = self.records.wrapping_add(1);
        *self.row_bytes = self.row_bytes.saturating_add(BYTES + TIME_BYTES);
        Ok(())
    }
}

/// What is being filled, with the batch in it.
fn filling<'a>(
    filling: &'a mut Mutex<Filling>,
    looked_at: &mut OnceLock<RecordBatch>,
) -> &'a mut Filling {
    let filling = filling.get_mut().unwrap_or_else(PoisonError::into_inner);
    if looked_at.get().is_some() {
        filling.take_back(looked_at);
    }
    filling
}
