//! Many records of any types, stored by column: the contents of a chunk, before and after the wire.
//!
//! A [`BatchBuilder`] adds rows. Serializers and filters read a [`RecordBatch`].

mod builder;
mod error;
mod nested;
mod string_index;
mod word_rows;

#[cfg(test)]
mod tests;

use std::iter;
use std::marker::PhantomData;
use std::sync::Arc;

use super::Records;
use super::column::Column;
use super::read::{Projection, ReadError};
use super::reference::{RecordFields, RecordRef};
use super::schema::{Field, Schema};
use super::strings::StringTable;

pub use builder::{BatchBuilder, FieldColumn};
pub use error::PushError;
pub(crate) use string_index::StringKeys;
pub use word_rows::WordRun;

/// Records in order, held as one [`Table`] a type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordBatch {
    pub(crate) strings: StringTable,
    pub(crate) tables: Vec<Table>,
    /// The position of each record's table; empty while there is only one table.
    pub(crate) order: Vec<u32>,
}

/// The records of one type.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub(crate) schema: Arc<Schema>,
    /// Logging times, in nanoseconds since the Unix epoch, or [`super::NO_TIMESTAMP`].
    pub(crate) timestamps: Vec<i64>,
    pub(crate) columns: Vec<Column>,
}

impl Table {
    /// An empty table for records of this type.
    pub fn new(schema: Arc<Schema>) -> Self {
        let columns = Column::for_fields(&schema);
        Self {
            schema,
            timestamps: Vec::new(),
            columns,
        }
    }

    /// Returns the timestamps and the columns, for containers of other crates.
    #[doc(hidden)]
    pub fn parts(&mut self) -> (&mut Vec<i64>, &mut Vec<Column>) {
        (&mut self.timestamps, &mut self.columns)
    }

    /// Returns the type of its records.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the number of its records.
    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.timestamps.is_empty()
    }

    /// Returns the logging time of each record, in nanoseconds since the Unix epoch, or
    /// [`super::NO_TIMESTAMP`].
    pub fn timestamps(&self) -> &[i64] {
        &self.timestamps
    }

    /// The smallest and the largest timestamp of the records that have one.
    fn time_span(&self) -> Option<(i64, i64)> {
        let times = self.timestamps.as_slice();
        let (first, last) = times.first().copied().zip(times.last().copied())?;
        // Nearly always all times are present, after 1970, and in order. Then the first and the
        // last are the answer. A fold over the signs shows it without any comparison.
        let behind = times.iter().skip(1);
        let signs = behind.zip(times).fold(first, |signs, (time, before)| {
            signs | time | time.wrapping_sub(*before)
        });
        if signs >= 0 {
            return Some((first, last));
        }
        let known = times.iter().filter(|time| **time != super::NO_TIMESTAMP);
        let span = known.fold((i64::MAX, i64::MIN), |(first, last), time| {
            (first.min(*time), last.max(*time))
        });
        (span.0 <= span.1).then_some(span)
    }

    /// One column a field, in the schema's order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns a copy with only the fields that `keep` accepts.
    fn narrowed(&self, mut keep: impl FnMut(&Schema, &Field) -> bool) -> Self {
        let schema = self.schema.narrowed(|field| keep(&self.schema, field));
        let fields = schema.fields().iter();
        let columns = fields.filter_map(|field| self.column(field.name()).cloned());
        Self {
            columns: columns.collect(),
            schema: Arc::new(schema),
            timestamps: self.timestamps.clone(),
        }
    }

    /// The column of the field with this name.
    pub fn column(&self, field: &str) -> Option<&Column> {
        self.columns.get(self.schema.position(field)?)
    }
}

impl RecordBatch {
    /// Creates a batch from parts that fit together, for containers of other crates: each column has
    /// as many values as its table has timestamps, each string has an id of `strings`, and `order`
    /// has the position of each record's table if there are several tables.
    #[doc(hidden)]
    pub fn from_parts(strings: StringTable, tables: Vec<Table>, order: Vec<u32>) -> Self {
        Self {
            strings,
            tables,
            order,
        }
    }

    /// Returns the number of its records.
    pub fn len(&self) -> usize {
        if self.order.is_empty() {
            self.tables.iter().map(Table::len).sum()
        } else {
            self.order.len()
        }
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(Table::is_empty)
    }

    /// One table a type, in order of first appearance.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the position of each record's table, in the order in which the records were emitted;
    /// empty while there is only one table.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The strings of all records.
    pub fn strings(&self) -> &StringTable {
        &self.strings
    }

    /// Returns an upper estimate of the encoded size, as
    /// [`BatchBuilder::estimated_bytes`] does.
    pub fn estimated_bytes(&self) -> usize {
        let tables = self.tables.iter().map(|table| {
            let columns = table.columns.iter().map(Column::row_bytes);
            columns.sum::<usize>() + size_of_val(table.timestamps())
        });
        tables.sum::<usize>() + self.strings.text_bytes()
    }

    /// The records in the order in which they were emitted.
    pub fn records(&self) -> RecordRefs<'_> {
        RecordRefs {
            batch: self,
            next: 0,
            rows: vec![0; self.tables.len()],
        }
    }

    /// Returns a copy with all records, but only the fields that `keep` accepts.
    #[must_use]
    pub fn narrowed(&self, mut keep: impl FnMut(&Schema, &Field) -> bool) -> Self {
        let tables = self.tables.iter().map(|table| table.narrowed(&mut keep));
        Self {
            tables: tables.collect(),
            strings: self.strings.clone(),
            order: self.order.clone(),
        }
    }

    /// Reads the records whose type has the name of `R`, or of one of the types of `R`, in order.
    /// Any version of the type can be read.
    ///
    /// The fields are matched once a table. A record that `R` cannot hold gives an error, and then
    /// the next record follows.
    pub fn read<R: Records>(&self) -> TypedRecords<'_, R> {
        let readers = R::schemas();
        let projections = self.tables.iter().map(|table| {
            let mut readers = readers.iter().enumerate();
            let (at, reader) = readers.find(|(_, it)| it.name() == table.schema.name())?;
            Some((at, Projection::new(reader, &table.schema)))
        });
        TypedRecords {
            projections: projections.collect(),
            records: self.records(),
            record_type: PhantomData,
        }
    }

    /// The smallest and the largest timestamp of the records that have one.
    pub fn time_span(&self) -> Option<(i64, i64)> {
        let spans = self.tables.iter().filter_map(Table::time_span);
        spans.reduce(|(first, last), (from, to)| (first.min(from), last.max(to)))
    }
}

/// Iterates over the records of a batch in order.
#[derive(Debug, Clone)]
pub struct RecordRefs<'a> {
    batch: &'a RecordBatch,
    next: usize,
    rows: Vec<usize>,
}

impl<'a> RecordRefs<'a> {
    /// Returns the records with the position of each one's table in [`RecordBatch::tables`].
    pub fn with_tables(mut self) -> impl Iterator<Item = (usize, RecordRef<'a>)> {
        iter::from_fn(move || self.next_row())
    }

    /// The next record and the position of its table.
    fn next_row(&mut self) -> Option<(usize, RecordRef<'a>)> {
        let table_index = match self.batch.order.get(self.next) {
            Some(table) => usize::try_from(*table).ok()?,
            None if self.batch.order.is_empty() => 0,
            None => return None,
        };
        let table = self.batch.tables.get(table_index)?;
        let row = self.rows.get_mut(table_index)?;
        let timestamp = *table.timestamps.get(*row)?;
        let fields =
            RecordFields::columnar(&table.schema, &table.columns, &self.batch.strings, *row);
        *row += 1;
        self.next += 1;
        Some((table_index, RecordRef::new(timestamp, fields)))
    }
}

impl<'a> Iterator for RecordRefs<'a> {
    type Item = RecordRef<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row().map(|(_, record)| record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.batch.len() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for RecordRefs<'_> {}

/// Iterates over the records of one type, or of several; see [`RecordBatch::read`].
#[derive(Debug)]
pub struct TypedRecords<'a, R> {
    records: RecordRefs<'a>,
    /// By table: the projection and the position of its type in `R`; `None` for tables of other
    /// types.
    projections: Vec<Option<(usize, Result<Projection, ReadError>)>>,
    record_type: PhantomData<fn() -> R>,
}

impl<R> TypedRecords<'_, R> {
    /// Returns the position in the batch of the last returned record.
    pub fn last_position(&self) -> Option<usize> {
        self.records.next.checked_sub(1)
    }
}

impl<R: Records> Iterator for TypedRecords<'_, R> {
    type Item = Result<R, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (table, record) = self.records.next_row()?;
            match self.projections.get(table)? {
                None => {}
                Some((at, Ok(projection))) => {
                    return Some(R::read_typed(*at, projection, record.fields()));
                }
                Some((_, Err(error))) => return Some(Err(error.clone())),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.records.len()))
    }
}
