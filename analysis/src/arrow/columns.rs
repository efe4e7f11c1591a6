//! Columns of records as Arrow arrays.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, DurationNanosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Int32Array, ListArray, MapArray,
    PrimitiveArray, StringArray, StructArray, UInt32Array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use arrow_select::take::take;
use baler_common::record::{
    AnyValue, Column, FieldType, ListColumn, OptionalColumn, RecordColumn, Role, Schema,
    StringTable, ValueRef,
};

use super::schema::{Times, entries, is_any_value, item, struct_fields};
use crate::sinks::text_of;

/// The most text of keys of maps, and of values of any type, in a chunk.
const MAX_TEXT_BYTES: usize = 1 << 30;

/// The data for converting all columns of a chunk.
#[derive(Debug, Clone)]
pub(crate) struct Context<'a> {
    table: &'a StringTable,
    /// The bytes of text that may still be copied from the string table, or made.
    text_left: Cell<usize>,
    /// The chunk's string table, shared by all columns of strings.
    pub(crate) strings: Arc<StringArray>,
    pub(crate) times: Times,
}

impl<'a> Context<'a> {
    pub(crate) fn new(table: &'a StringTable, times: Times) -> Result<Self, ArrowError> {
        // Positions in Arrow's text have 32 bits with a sign.
        within(table.text_bytes(), "the string table")?;
        let strings = StringArray::from_iter_values(table.iter());
        Ok(Self {
            table,
            text_left: Cell::new(MAX_TEXT_BYTES),
            strings: Arc::new(strings),
            times,
        })
    }

    /// A column as an array.
    ///
    /// # Errors
    ///
    /// The column does not have this type, or has more text or items than 2 Gi.
    pub(crate) fn array(
        &self,
        column: &Column,
        field_type: &FieldType,
        role: Role,
    ) -> Result<ArrayRef, ArrowError> {
        Ok(match (column, field_type) {
            (Column::Bool(values), FieldType::Bool) => Arc::new(BooleanArray::from(values.clone())),
            (Column::Bytes(column), FieldType::Bytes) => {
                let data = Buffer::from_slice_ref(&column.data);
                let offsets = offsets(&column.ends, column.data.len())?;
                Arc::new(BinaryArray::try_new(offsets, data, None)?)
            }
            (Column::Char(values), FieldType::Char) => {
                let mut buffer = [0; 4];
                let mut text = StringBuilder::new();
                for value in values {
                    text.append_value(value.encode_utf8(&mut buffer));
                }
                Arc::new(text.finish())
            }
            (Column::Enum(values), FieldType::Enum(kind)) => {
                let variants = StringArray::from_iter_values(kind.variants());
                dictionary(values, Arc::new(variants))?
            }
            (Column::String(values), FieldType::String) => {
                dictionary(values, Arc::clone(&self.strings) as ArrayRef)?
            }
            (Column::F32(bits), FieldType::F32) => {
                primitive::<Float32Type>(bits.iter().map(|bits| f32::from_bits(*bits)))
            }
            (Column::F64(bits), FieldType::F64) => {
                primitive::<Float64Type>(bits.iter().map(|bits| f64::from_bits(*bits)))
            }
            (Column::Signed(values), _) => self.signed(values, field_type, role)?,
            (Column::Unsigned(values), _) => unsigned(values, field_type)?,
            (Column::Optional(column), FieldType::Optional(inner)) => {
                let present = self.array(&column.present, inner, role)?;
                optional(column, &present)?
            }
            (Column::List(column), FieldType::List(inner)) => {
                let items = self.array(&column.items, inner, role)?;
                let field = Arc::new(item(inner, role, self.times));
                let offsets = offsets(&column.ends, items.len())?;
                Arc::new(ListArray::try_new(field, offsets, items, None)?)
            }
            (Column::List(column), FieldType::Map(_)) => self.maps(column, field_type)?,
            (Column::Record(_), FieldType::Record(schema)) if is_any_value(schema) => {
                self.any_values(column, field_type)?
            }
            (Column::Record(column), FieldType::Record(schema)) => {
                if schema.fields().is_empty() {
                    return Ok(Arc::new(BooleanArray::from(vec![true; column.len])));
                }
                let arrays = self.arrays(&column.fields, schema)?;
                let fields = struct_fields(schema, self.times);
                Arc::new(StructArray::try_new(fields, arrays, None)?)
            }
            _ => return Err(mismatch(field_type)),
        })
    }

    /// Maps. Their keys become plain text. Each key is in its map once, because DuckDB refuses others.
    fn maps(&self, column: &ListColumn, field_type: &FieldType) -> Result<ArrayRef, ArrowError> {
        let Column::Record(RecordColumn { fields, .. }) = &column.items else {
            return Err(mismatch(field_type));
        };
        let ([Column::String(keys), values], Some(value_type)) =
            (&**fields, field_type.map_value())
        else {
            return Err(mismatch(field_type));
        };
        let (kept, ends) = last_entries(keys, &column.ends).ok_or_else(|| mismatch(field_type))?;
        let mut key_ids = UInt32Array::from(keys.clone());
        let mut values = self.array(values, value_type, Role::Plain)?;
        if kept.len() < keys.len() {
            let kept = UInt32Array::from(kept);
            key_ids = take(&key_ids, &kept, None)?.as_primitive().clone();
            values = take(&values, &kept, None)?;
        }
        for id in key_ids.values() {
            let key = self.table.get(*id).ok_or_else(|| mismatch(field_type))?;
            self.charge(key)?;
        }
        let keys = take(&*self.strings, &key_ids, None)?;
        let (field, fields) = entries(field_type, self.times);
        let entries = StructArray::try_new(fields, vec![keys, values], None)?;
        let offsets = offsets(&ends, entries.len())?;
        let maps = MapArray::try_new(Arc::new(field), offsets, entries, None, false)?;
        Ok(Arc::new(maps))
    }

    /// Values of any type as text.
    fn any_values(&self, column: &Column, field_type: &FieldType) -> Result<ArrayRef, ArrowError> {
        let mut texts = StringBuilder::new();
        for row in 0..column.len() {
            let value = match column.value(row, field_type, self.table) {
                Some(ValueRef::Record(value)) => AnyValue::plain(value),
                _ => None,
            };
            let text = text_of(value.ok_or_else(|| mismatch(field_type))?);
            self.charge(text.as_deref().unwrap_or(""))?;
            texts.append_option(text);
        }
        Ok(Arc::new(texts.finish()))
    }

    /// Counts text that takes memory of its own. A key in many rows is in the chunk only once.
    fn charge(&self, text: &str) -> Result<(), ArrowError> {
        let left = self.text_left.get().checked_sub(text.len());
        self.text_left.set(left.ok_or_else(|| {
            let message = "a chunk has more than 1 GiB of text in maps and values of any type";
            ArrowError::InvalidArgumentError(message.to_owned())
        })?);
        Ok(())
    }

    /// The columns of a record type as arrays.
    pub(crate) fn arrays(
        &self,
        columns: &[Column],
        schema: &Schema,
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        let fields = schema.fields().iter().zip(columns);
        fields
            .map(|(field, column)| self.array(column, field.field_type(), field.role()))
            .collect()
    }

    fn signed(
        &self,
        values: &[i64],
        field_type: &FieldType,
        role: Role,
    ) -> Result<ArrayRef, ArrowError> {
        match (field_type, role) {
            (FieldType::I8, _) => narrow::<Int8Type, _>(values),
            (FieldType::I16, _) => narrow::<Int16Type, _>(values),
            (FieldType::I32, _) => narrow::<Int32Type, _>(values),
            (FieldType::I64, Role::Plain) => narrow::<Int64Type, _>(values),
            (FieldType::I64, Role::Nanos) => narrow::<DurationNanosecondType, _>(values),
            (FieldType::I64, Role::UnixNanos) => Ok(times(values, None, self.times)),
            _ => Err(mismatch(field_type)),
        }
    }
}

/// Points in time; values equal to `missing` become null.
pub(crate) fn times(values: &[i64], missing: Option<i64>, unit: Times) -> ArrayRef {
    fn array<T: ArrowPrimitiveType<Native = i64>>(
        values: &[i64],
        missing: Option<i64>,
        scaled: impl Fn(i64) -> i64,
    ) -> ArrayRef {
        let known = |value: &i64| (Some(*value) != missing).then(|| scaled(*value));
        if missing.is_some_and(|missing| values.contains(&missing)) {
            Arc::new(PrimitiveArray::<T>::from_iter(values.iter().map(known)))
        } else {
            let values = values.iter().map(|value| scaled(*value));
            Arc::new(PrimitiveArray::<T>::from_iter_values(values))
        }
    }
    match unit {
        Times::Micros => {
            array::<TimestampMicrosecondType>(values, missing, |time| time.div_euclid(1_000))
        }
        Times::Nanos => array::<TimestampNanosecondType>(values, missing, |time| time),
    }
}

/// Strings by their positions in `values`.
pub(crate) fn dictionary(ids: &[u32], values: ArrayRef) -> Result<ArrayRef, ArrowError> {
    let keys = ids.iter().map(|id| i32::try_from(*id));
    let keys: Result<Vec<i32>, _> = keys.collect();
    let keys = keys.map_err(|_| ArrowError::DictionaryKeyOverflowError)?;
    let array = DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), values)?;
    Ok(Arc::new(array))
}

fn unsigned(values: &[u64], field_type: &FieldType) -> Result<ArrayRef, ArrowError> {
    match field_type {
        FieldType::U8 => narrow::<UInt8Type, _>(values),
        FieldType::U16 => narrow::<UInt16Type, _>(values),
        FieldType::U32 => narrow::<UInt32Type, _>(values),
        FieldType::U64 => narrow::<UInt64Type, _>(values),
        _ => Err(mismatch(field_type)),
    }
}

fn primitive<T: ArrowPrimitiveType>(values: impl Iterator<Item = T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(values))
}

/// Numbers of 64 bits in the width of their field.
fn narrow<T, V>(values: &[V]) -> Result<ArrayRef, ArrowError>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<V>,
    V: Copy + std::fmt::Display,
{
    let narrow = |value: &V| {
        T::Native::try_from(*value)
            .map_err(|_| ArrowError::CastError(format!("{value} is no {}", T::DATA_TYPE)))
    };
    let values: Result<Vec<_>, _> = values.iter().map(narrow).collect();
    let values = ScalarBuffer::from(values?);
    Ok(Arc::new(PrimitiveArray::<T>::try_new(values, None)?))
}

/// The present values spread over the rows.
fn optional(column: &OptionalColumn, present: &dyn Array) -> Result<ArrayRef, ArrowError> {
    let positions = column.positions.iter();
    let positions: UInt32Array = positions
        .map(|at| (*at != OptionalColumn::ABSENT).then_some(*at))
        .collect();
    take(present, &positions, None)
}

/// Returns the positions of the entries whose keys do not come again in their map, and the ends of
/// the maps among them. Returns `None` if an end is no position in the keys.
fn last_entries(keys: &[u32], ends: &[u32]) -> Option<(Vec<u32>, Vec<u32>)> {
    // The latest map with each key.
    let mut maps = HashMap::new();
    let mut kept = Vec::with_capacity(keys.len());
    let mut kept_ends = Vec::with_capacity(ends.len());
    let mut from = 0;
    for (map, end) in ends.iter().enumerate() {
        let first = kept.len();
        let entries = keys.get(from as usize..*end as usize)?;
        for (at, key) in (from..*end).zip(entries).rev() {
            if maps.insert(*key, map) != Some(map) {
                kept.push(at);
            }
        }
        kept[first..].reverse();
        kept_ends.push(u32::try_from(kept.len()).ok()?);
        from = *end;
    }
    Some((kept, kept_ends))
}

/// Converts ends to Arrow's offsets; the last one is `last`.
fn offsets(ends: &[u32], last: usize) -> Result<OffsetBuffer<i32>, ArrowError> {
    within(last, "a column")?;
    let ends = ends.iter().map(|end| i32::try_from(*end));
    let offsets: Result<Vec<i32>, _> = std::iter::once(Ok(0)).chain(ends).collect();
    let offsets = offsets.map_err(|_| ArrowError::OffsetOverflowError(last))?;
    if !offsets.is_sorted() {
        return Err(ArrowError::InvalidArgumentError("ends go back".to_owned()));
    }
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

fn within(bytes: usize, what: &str) -> Result<(), ArrowError> {
    match i32::try_from(bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(ArrowError::InvalidArgumentError(format!(
            "{what} has {bytes} bytes, more than 2 GiB"
        ))),
    }
}

fn mismatch(field_type: &FieldType) -> ArrowError {
    ArrowError::SchemaError(format!("a column is not one of {field_type}"))
}

#[cfg(test)]
mod tests;
