//! Columns of records as Arrow arrays.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, DurationNanosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Int32Array, ListArray,
    PrimitiveArray, StringArray, StructArray, UInt32Array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use arrow_select::take::take;
use baler_common::record::{Column, FieldType, OptionalColumn, Role, Schema, StringTable};

use super::schema::{Times, item, struct_fields};

/// The data for converting all columns of a chunk.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The chunk's string table, shared by all columns of strings.
    pub(crate) strings: Arc<StringArray>,
    pub(crate) times: Times,
}

impl Context {
    pub(crate) fn new(strings: &StringTable, times: Times) -> Result<Self, ArrowError> {
        // Positions in Arrow's text have 32 bits with a sign.
        within(strings.text_bytes(), "the string table")?;
        let strings = StringArray::from_iter_values(strings.iter());
        Ok(Self {
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
                let mut text = arrow_array::builder::StringBuilder::new();
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
