//! The records of one type in a batch, as that type.

use std::marker::PhantomData;

use super::{RecordBatch, Records};
use crate::record::read::{Projection, ReadError};
use crate::record::{Record, Schema};

impl RecordBatch {
    /// The records whose type has the name of `R`, in order, whatever version of it wrote them.
    ///
    /// The fields are matched once a table. A record that `R` cannot hold is an error of its own,
    /// and the next record follows.
    pub fn read<R: Record>(&self) -> TypedRecords<'_, R> {
        let reader: &Schema = R::schema();
        let projections = self.tables.iter().map(|table| {
            (table.schema.name() == reader.name()).then(|| Projection::new(reader, &table.schema))
        });
        TypedRecords {
            projections: projections.collect(),
            records: self.records(),
            record_type: PhantomData,
        }
    }
}

/// Iterates over the records of one type; see [`RecordBatch::read`].
#[derive(Debug)]
pub struct TypedRecords<'a, R> {
    records: Records<'a>,
    /// One a table; nothing for tables of other types.
    projections: Vec<Option<Result<Projection, ReadError>>>,
    record_type: PhantomData<fn() -> R>,
}

impl<R: Record> Iterator for TypedRecords<'_, R> {
    type Item = Result<R, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (table, record) = self.records.next_row()?;
            match self.projections.get(table)? {
                None => {}
                Some(Ok(projection)) => return Some(projection.read_matched(record.fields())),
                Some(Err(error)) => return Some(Err(error.clone())),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.records.len()))
    }
}
