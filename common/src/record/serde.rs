//! The bridge between records and serde, in both directions.
//!
//! [`SerdeType`] makes records from any type that serde can write. [`from_record`] makes any type
//! that serde can read from a record, even one from another writer. For your own types
//! `#[derive(Record)]` is cheaper: it writes a row directly.
//!
//! # Tracing
//!
//! A schema cannot be derived from one value: a `None` or an empty list does not show its type. So
//! `T::deserialize` runs with a deserializer that has no data and records the requests.
//! `serde-reflection` and `serde_arrow` trace types in the same way.
//!
//! | serde | field |
//! |---|---|
//! | bool, i8 to i64, u8 to u64, f32, f64, char, string, bytes | the same |
//! | option of these | optional |
//! | sequence; tuple or array of one type | list |
//! | map whose keys are text | map |
//! | other tuples | record `tuple` with fields `0`, `1`, ... |
//! | struct | record |
//! | newtype struct | what is in it |
//! | enum whose variants have no data | enum |
//! | everything else | one opaque field |
//!
//! "Everything else" means maps with other keys, `flatten`, enums with data, untagged and internally
//! tagged enums, `serde_json::Value`, unit, 128-bit integers, an option of an opaque type or of an
//! option, a type inside itself, nesting beyond [`super::MAX_DEPTH`], tuples with an item that
//! refuses every sample value, and types whose `Deserialize` does not follow from their type. An
//! opaque field is a record `baler.serde.Opaque` with one field `encoded`, in a self-describing
//! encoding ([`OPAQUE_NAME`]). It loses nothing that serde can write, but only serde can read it. A
//! type that is not a struct becomes a record with one field, [`VALUE_FIELD`].
//!
//! # Limits
//!
//! - `skip_serializing_if` works for options, lists, maps and opaque fields. A skipped field is
//!   written as null, as an empty list or map, or as absent. For other fields the record is refused.
//! - Names must be the same in both directions. `rename(serialize = ..., deserialize = ...)` with
//!   different names, and `skip_serializing` alone, are refused when a record is made.

mod deserializer;
mod error;
mod node;
mod opaque;
mod serializer;
mod tracer;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use ::serde::{Deserialize, Serialize};

use super::{DynamicRecord, Field, FieldType, RecordFields, Schema, Value};

pub use deserializer::VALUE_FIELD;
pub use error::SerdeError;
pub use opaque::OPAQUE_NAME;

/// A record type made from a serde type; made once, then used for many values.
///
/// ```
/// use baler_common::record::serde::{SerdeType, from_record};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Order {
///     customer: String,
///     lines: Vec<(u64, f64)>,
///     discount: Option<f32>,
/// }
///
/// let orders = SerdeType::<Order>::trace("shop.Order")?;
/// let order = Order { customer: "Ada".into(), lines: vec![(4711, 2.5)], discount: None };
/// let record = orders.to_record(None, &order)?;
/// assert_eq!(
///     format!("{:?}", orders.schema()),
///     "shop.Order { customer: string, lines: list<record tuple>, discount: optional<f32> }"
/// );
/// assert_eq!(from_record::<Order>(record.as_ref().fields())?, order);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SerdeType<T> {
    schema: Arc<Schema>,
    /// The schema as a field's type; for a type that is not a struct, the type of its one field.
    field_type: FieldType,
    is_struct: bool,
    value: PhantomData<fn(&T)>,
}

impl<T: for<'de> Deserialize<'de>> SerdeType<T> {
    /// Finds the schema by tracing `T::deserialize`; `name` is the record type's name.
    ///
    /// # Errors
    ///
    /// A [`SerdeError`] when a schema's limits are exceeded, for example by a name that is too long
    /// or by a type with too many fields.
    pub fn trace(name: &str) -> Result<Self, SerdeError> {
        let node = tracer::trace::<T>()?;
        let traced = node.into_root(name)?;
        let (schema, field_type, is_struct) = match traced {
            FieldType::Record(schema) if schema.name() == name => {
                (Arc::clone(&schema), FieldType::Record(schema), true)
            }
            other => {
                let schema = Schema::new(name, vec![Field::new(VALUE_FIELD, other.clone())])?;
                (Arc::new(schema), other, false)
            }
        };
        Ok(Self {
            schema,
            field_type,
            is_struct,
            value: PhantomData,
        })
    }
}

impl<T> SerdeType<T> {
    /// The schema of the records.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Makes a record of a value.
    ///
    /// `timestamp` is the logging time, in nanoseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// A [`SerdeError`] that names the field for which the type's `Serialize` does not agree with
    /// its `Deserialize`, or the type's own error.
    pub fn to_record(&self, timestamp: Option<i64>, value: &T) -> Result<DynamicRecord, SerdeError>
    where
        T: Serialize,
    {
        let values = match serializer::to_value(value, &self.field_type)? {
            Value::Record(values) if self.is_struct => values,
            value => vec![value],
        };
        Ok(DynamicRecord::new(
            Arc::clone(&self.schema),
            timestamp,
            values,
        )?)
    }
}

impl<T> fmt::Debug for SerdeType<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SerdeType").field(&self.schema).finish()
    }
}

/// Makes a value from a record. The fields of a struct are matched by name.
///
/// Text and bytes may be borrowed from the record.
///
/// # Errors
///
/// A [`SerdeError`] that names the field.
pub fn from_record<'de, T: Deserialize<'de>>(record: RecordFields<'de>) -> Result<T, SerdeError> {
    T::deserialize(deserializer::ValueDeserializer::of_record(record))
}
