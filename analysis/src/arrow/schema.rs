//! Record types as Arrow schemas.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use baler_common::record::{
    AnyValue, Field as RecordField, FieldType, Role, Schema as RecordSchema,
};

/// The name of the column with the logging time of a record.
pub(crate) const LOGGED: &str = "_timestamp";

/// The unit of points in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Times {
    /// Microseconds, rounded down: for readers without a smaller unit, such as Spark's.
    Micros,
    /// Nanoseconds, as in records.
    #[default]
    Nanos,
}

impl Times {
    /// The type of a point in time.
    ///
    /// It has no time zone, because some readers keep nanoseconds only without one. All times are
    /// UTC.
    pub(crate) fn data_type(self) -> DataType {
        let unit = match self {
            Self::Micros => TimeUnit::Microsecond,
            Self::Nanos => TimeUnit::Nanosecond,
        };
        DataType::Timestamp(unit, None)
    }
}

/// The schema of a table of records of this type: the logging time, the columns of `identity`, and
/// one column for each field.
///
/// Its metadata contains the type's name and fingerprint. The metadata of a field contains its
/// role.
pub fn schema_of(schema: &RecordSchema, times: Times, identity: bool) -> Schema {
    let mut own = vec![Field::new(LOGGED, times.data_type(), true)];
    if identity {
        own.extend(super::convert::identity_fields());
    }
    let mut fields: Vec<_> = own
        .into_iter()
        .map(|field| {
            // Two columns with the same name could not be distinguished.
            let mut name = field.name().clone();
            while schema.position(&name).is_some() {
                name.insert(0, '_');
            }
            field.with_name(name)
        })
        .collect();
    fields.extend(
        schema
            .fields()
            .iter()
            .map(|field| arrow_field(field, times)),
    );
    let metadata = [
        ("baler.type", schema.name().to_owned()),
        ("baler.fingerprint", fingerprint(schema)),
    ];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
    Schema::new_with_metadata(fields, HashMap::from(metadata))
}

/// The schema's fingerprint in hexadecimal digits.
pub(crate) fn fingerprint(schema: &RecordSchema) -> String {
    format!("{:032x}", schema.fingerprint().as_u128())
}

fn arrow_field(field: &RecordField, times: Times) -> Field {
    let nullable = is_nullable(field.field_type());
    let kind = data_type(field.field_type(), field.role(), times);
    let arrow = Field::new(field.name(), kind, nullable);
    let role = match field.role() {
        Role::Plain => return arrow,
        Role::UnixNanos => "unix_nanos",
        Role::Nanos => "nanos",
    };
    let metadata = [("baler.role".to_owned(), role.to_owned())];
    arrow.with_metadata(HashMap::from(metadata))
}

/// Strings by their position in a table of strings.
pub(crate) fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The Arrow type of a field's values; `role` applies to the numbers in it.
pub(crate) fn data_type(field_type: &FieldType, role: Role, times: Times) -> DataType {
    match field_type {
        FieldType::Bool => DataType::Boolean,
        FieldType::I8 => DataType::Int8,
        FieldType::I16 => DataType::Int16,
        FieldType::I32 => DataType::Int32,
        FieldType::I64 => match role {
            Role::Plain => DataType::Int64,
            Role::UnixNanos => times.data_type(),
            Role::Nanos => DataType::Duration(TimeUnit::Nanosecond),
        },
        FieldType::U8 => DataType::UInt8,
        FieldType::U16 => DataType::UInt16,
        FieldType::U32 => DataType::UInt32,
        // Arrow's times and spans are signed: half of the values would not fit.
        FieldType::U64 => DataType::UInt64,
        FieldType::F32 => DataType::Float32,
        FieldType::F64 => DataType::Float64,
        FieldType::Char => DataType::Utf8,
        FieldType::String | FieldType::Enum(_) => dictionary(),
        FieldType::Bytes => DataType::Binary,
        FieldType::Optional(inner) => data_type(inner, role, times),
        FieldType::List(inner) => DataType::List(Arc::new(item(inner, role, times))),
        FieldType::Map(_) => DataType::Map(Arc::new(entries(field_type, times).0), false),
        FieldType::Record(schema) if is_any_value(schema) => DataType::Utf8,
        // Parquet has no struct without fields.
        FieldType::Record(schema) if schema.fields().is_empty() => DataType::Boolean,
        FieldType::Record(schema) => DataType::Struct(struct_fields(schema, times)),
    }
}

/// The items of a list.
pub(crate) fn item(field_type: &FieldType, role: Role, times: Times) -> Field {
    let kind = data_type(field_type, role, times);
    Field::new("item", kind, is_nullable(field_type))
}

/// The entries of a map, and their fields. Keys are plain text, for readers that know no dictionaries
/// in keys.
pub(crate) fn entries(map: &FieldType, times: Times) -> (Field, Fields) {
    let value = map.map_value().expect("schemas refuse other entries");
    let kind = data_type(value, Role::Plain, times);
    let fields = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", kind, is_nullable(value)),
    ]);
    (Field::new_struct("entries", fields.clone(), false), fields)
}

/// Whether records of this type are values of any type. They become text: JSON, but for strings.
pub(crate) fn is_any_value(schema: &RecordSchema) -> bool {
    *schema == **AnyValue::schema()
}

fn is_nullable(field_type: &FieldType) -> bool {
    match field_type {
        FieldType::Optional(_) => true,
        FieldType::Record(schema) => is_any_value(schema),
        _ => false,
    }
}

/// The fields of a nested record.
pub(crate) fn struct_fields(schema: &RecordSchema, times: Times) -> Fields {
    let fields = schema.fields().iter();
    fields.map(|field| arrow_field(field, times)).collect()
}
