//! Chunks to Arrow record batches, one a record type.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchOptions, StringArray,
    UInt32Array, UInt64Array, new_null_array,
};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use arrow_select::take::take_record_batch;
use baler_common::record::{
    Fingerprint, NO_TIMESTAMP, RecordBatch as Records, Schema as RecordSchema, Table,
};
use baler_common::transport::ChunkIdentity;

use super::columns::{Context, times};
use super::schema::{Times, dictionary, schema_of};
use crate::parcel::rows_by_table;

/// The most schemas that are remembered. A stream with more types makes schemas again.
const KEPT_SCHEMAS: usize = 1_024;

/// The records of one type.
#[derive(Debug, Clone)]
pub struct TypeBatch {
    /// Their type.
    pub schema: Arc<RecordSchema>,
    /// Their logging times, in nanoseconds since the Unix epoch, or [`NO_TIMESTAMP`].
    pub timestamps: Vec<i64>,
    /// The records, in the order in which they were emitted.
    pub rows: RecordBatch,
}

/// Converts chunks; remembers the schemas of their types.
#[derive(Debug, Default)]
pub struct Converter {
    times: Times,
    identity: bool,
    only: Option<Fingerprint>,
    schemas: HashMap<Fingerprint, SchemaRef>,
}

impl Converter {
    /// Creates a converter whose points in time have this unit.
    pub fn new(times: Times) -> Self {
        Self {
            times,
            ..Self::default()
        }
    }

    /// Adds columns that identify the record of a row: `_producer`, `_epoch`, `_lane`, `_sequence`
    /// (null if the chunk does not contain them) and `_index`, the record's position in its chunk.
    #[must_use]
    pub fn with_identity(mut self) -> Self {
        self.identity = true;
        self
    }

    /// Converts only records of the type with this fingerprint.
    #[must_use]
    pub fn with_only(mut self, fingerprint: Fingerprint) -> Self {
        self.only = Some(fingerprint);
        self
    }

    /// Converts the records of a chunk to one batch for each type. With a `selection`, only the
    /// records at these positions, which must be in ascending order. Types without a record are
    /// left out.
    ///
    /// # Errors
    ///
    /// A table exceeds Arrow's 32-bit offsets (2 GiB of text or of items).
    ///
    /// # Panics
    ///
    /// The selection is not in ascending order, or has a position that no record has.
    pub fn convert(
        &mut self,
        records: &Records,
        selection: Option<&[u32]>,
        identity: Option<&ChunkIdentity>,
    ) -> Result<Vec<TypeBatch>, ArrowError> {
        let context = Context::new(records.strings(), self.times)?;
        let selected = rows_by_table(records, selection);
        let mut batches = Vec::new();
        for (table, selected) in records.tables().iter().zip(selected) {
            let is_wanted = |only| table.schema().fingerprint() == only;
            if selected.is_empty() || !self.only.is_none_or(is_wanted) {
                continue;
            }
            let rows = self.rows(table, &context)?;
            let mut batch = TypeBatch {
                schema: Arc::clone(table.schema()),
                timestamps: table.timestamps().to_vec(),
                rows,
            };
            let (selected, positions): (Vec<u32>, _) = selected.into_iter().unzip();
            if selected.len() < table.len() {
                batch = batch.take(selected)?;
            }
            if self.identity {
                let own = identity_arrays(identity, positions)?;
                batch.rows = self.identified(&batch, own)?;
            }
            batches.push(batch);
        }
        Ok(batches)
    }

    /// The whole table, without identity.
    fn rows(&mut self, table: &Table, context: &Context<'_>) -> Result<RecordBatch, ArrowError> {
        let schema = match self.identity {
            true => Arc::new(schema_of(table.schema(), self.times, false)),
            false => self.schema(table.schema()),
        };
        let logged = times(table.timestamps(), Some(NO_TIMESTAMP), self.times);
        let mut arrays = vec![logged];
        arrays.extend(context.arrays(table.columns(), table.schema())?);
        batch_of(schema, arrays, table.len())
    }

    /// Returns the batch with the columns of the identity after the first column.
    fn identified(
        &mut self,
        batch: &TypeBatch,
        own: Vec<ArrayRef>,
    ) -> Result<RecordBatch, ArrowError> {
        let mut columns = batch.rows.columns().iter().cloned();
        let logged = columns.next();
        let arrays = logged.into_iter().chain(own).chain(columns).collect();
        batch_of(self.schema(&batch.schema), arrays, batch.rows.num_rows())
    }

    fn schema(&mut self, schema: &RecordSchema) -> SchemaRef {
        if self.schemas.len() >= KEPT_SCHEMAS {
            self.schemas.clear();
        }
        let known = self.schemas.entry(schema.fingerprint());
        let made = known.or_insert_with(|| Arc::new(schema_of(schema, self.times, self.identity)));
        Arc::clone(made)
    }
}

impl TypeBatch {
    /// Returns some of the rows.
    pub(crate) fn take(&self, rows: Vec<u32>) -> Result<Self, ArrowError> {
        let times = rows.iter().map(|row| self.timestamps[*row as usize]);
        Ok(Self {
            schema: Arc::clone(&self.schema),
            timestamps: times.collect(),
            rows: take_record_batch(&self.rows, &UInt32Array::from(rows))?,
        })
    }
}

fn batch_of(
    schema: SchemaRef,
    arrays: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, arrays, &options)
}

/// Returns the columns that identify a record, so that queries can drop copies.
pub(crate) fn identity_fields() -> [Field; 5] {
    [
        Field::new("_producer", dictionary(), true),
        Field::new("_epoch", dictionary(), true),
        Field::new("_lane", DataType::UInt32, true),
        Field::new("_sequence", DataType::UInt64, true),
        Field::new("_index", DataType::UInt32, false),
    ]
}

/// The columns of rows whose positions in the chunk are `indices`.
pub(crate) fn identity_arrays(
    identity: Option<&ChunkIdentity>,
    indices: Vec<u32>,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let rows = indices.len();
    let mut arrays = match identity {
        Some(identity) => vec![
            constant(&identity.producer.to_string(), rows)?,
            constant(&identity.epoch.to_string(), rows)?,
            Arc::new(UInt32Array::from_value(identity.lane, rows)),
            Arc::new(UInt64Array::from_value(identity.sequence, rows)),
        ],
        None => {
            let [producer, epoch, lane, sequence, _] = identity_fields();
            let fields = [producer, epoch, lane, sequence];
            let nulls = fields.map(|field| new_null_array(field.data_type(), rows));
            nulls.into()
        }
    };
    arrays.push(Arc::new(UInt32Array::from(indices)));
    Ok(arrays)
}

fn constant(text: &str, rows: usize) -> Result<ArrayRef, ArrowError> {
    let keys = Int32Array::from_value(0, rows);
    let values: Arc<dyn Array> = Arc::new(StringArray::from_iter_values([text]));
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
        keys, values,
    )?))
}
