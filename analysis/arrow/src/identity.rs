//! Columns that say which record of which chunk a row is.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Int32Array, StringArray, UInt32Array, UInt64Array, new_null_array,
};
use arrow_array::{DictionaryArray, types::Int32Type};
use arrow_schema::{ArrowError, DataType, Field};
use baler_common::transport::ChunkIdentity;

use crate::schema::dictionary;

/// The columns that identify a record, so that queries can drop copies.
pub(crate) fn fields() -> [Field; 5] {
    [
        Field::new("_producer", dictionary(), true),
        Field::new("_epoch", dictionary(), true),
        Field::new("_lane", DataType::UInt32, true),
        Field::new("_sequence", DataType::UInt64, true),
        Field::new("_index", DataType::UInt32, false),
    ]
}

/// The columns of rows whose positions in the chunk are `indices`.
pub(crate) fn arrays(
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
            let [producer, epoch, lane, sequence, _] = fields();
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
