//! A value whose type differs from record to record; FORMAT.md, "Values of any type".

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use super::derived;
use super::field_value::{FieldValue, Shape, refuse};
use super::read::{Projection, ReadError};
use super::reference::{RecordFields, ValueRef};
use super::row::RowWriter;
use super::schema::{Field, FieldType, Schema};
use super::value::Value;

/// The name of the record type that holds an [`AnyValue`].
pub const ANY_VALUE_NAME: &str = "baler.AnyValue";

/// A value whose type differs from record to record, such as an attribute of a span.
///
/// In a record it is a nested record with an optional field for each type. Sinks show its plain
/// value.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum AnyValue<'a> {
    /// No value.
    #[default]
    Empty,
    /// True or false.
    Bool(bool),
    /// A whole number.
    I64(i64),
    /// Another number.
    F64(f64),
    /// Text.
    String(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// JSON text of a list or an object.
    Json(Cow<'a, str>),
}

/// The field with JSON text.
const JSON: &str = "json";

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let fields = [
        ("bool", FieldType::Bool),
        ("i64", FieldType::I64),
        ("f64", FieldType::F64),
        ("string", FieldType::String),
        ("bytes", FieldType::Bytes),
        (JSON, FieldType::String),
    ];
    let fields = fields.map(|(name, of)| Field::new(name, of.optional()));
    derived::schema(ANY_VALUE_NAME, fields.into())
});

/// Returns the present field of a nested record, or null; `None` if the record has another type.
fn present(record: RecordFields<'_>) -> Option<(&str, ValueRef<'_>)> {
    if **record.schema() != **SCHEMA {
        return None;
    }
    let mut fields = record.values();
    let present = fields.find(|(_, value)| !matches!(value, ValueRef::Null));
    Some(present.unwrap_or(("", ValueRef::Null)))
}

impl<'a> AnyValue<'a> {
    /// The type of the nested record.
    pub fn schema() -> &'static Arc<Schema> {
        &SCHEMA
    }

    /// Returns the value that a nested record holds; `None` if the record has another type.
    pub fn of(record: RecordFields<'a>) -> Option<Self> {
        Some(match present(record)? {
            (_, ValueRef::Bool(value)) => Self::Bool(value),
            (_, ValueRef::Signed(value)) => Self::I64(value),
            (_, ValueRef::F64(value)) => Self::F64(value),
            (JSON, ValueRef::String(value)) => Self::Json(value.into()),
            (_, ValueRef::String(value)) => Self::String(value.into()),
            (_, ValueRef::Bytes(value)) => Self::Bytes(value.into()),
            _ => Self::Empty,
        })
    }

    /// As [`AnyValue::of`], but the plain value: null if there is none, and JSON text as text.
    pub fn plain(record: RecordFields<'a>) -> Option<ValueRef<'a>> {
        present(record).map(|(_, value)| value)
    }

    /// Returns the text of a nested record with JSON text.
    pub fn json(record: RecordFields<'a>) -> Option<&'a str> {
        match present(record)? {
            (JSON, ValueRef::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Appends the value to a row.
    pub fn write(&self, row: &mut RowWriter<'_>) {
        let fields = self.fields().into_iter().zip(SCHEMA.fields());
        fields.for_each(|(value, field)| value.write(row, field.field_type()));
    }

    /// The nested record, for a [`DynamicRecord`](super::DynamicRecord).
    pub fn to_value(&self) -> Value {
        Value::Record(self.fields().map(ValueRef::to_value).into())
    }

    /// The values of the fields of the nested record.
    fn fields(&self) -> [ValueRef<'_>; 6] {
        let [mut bool, mut i64, mut f64, mut string, mut bytes, mut json] = [ValueRef::Null; 6];
        match self {
            Self::Empty => {}
            Self::Bool(value) => bool = ValueRef::Bool(*value),
            Self::I64(value) => i64 = ValueRef::Signed(*value),
            Self::F64(value) => f64 = ValueRef::F64(*value),
            Self::String(value) => string = ValueRef::String(value),
            Self::Bytes(value) => bytes = ValueRef::Bytes(value),
            Self::Json(value) => json = ValueRef::String(value),
        }
        [bool, i64, f64, string, bytes, json]
    }

    /// The value with a copy of its text or bytes.
    fn into_owned(self) -> AnyValue<'static> {
        match self {
            Self::Empty => AnyValue::Empty,
            Self::Bool(value) => AnyValue::Bool(value),
            Self::I64(value) => AnyValue::I64(value),
            Self::F64(value) => AnyValue::F64(value),
            Self::String(value) => AnyValue::String(value.into_owned().into()),
            Self::Bytes(value) => AnyValue::Bytes(value.into_owned().into()),
            Self::Json(value) => AnyValue::Json(value.into_owned().into()),
        }
    }
}

impl FieldValue for AnyValue<'static> {
    const SHAPE: Shape = Shape::record(&[Shape::LEAF.optional()]);

    fn field_type() -> FieldType {
        FieldType::Record(Arc::clone(Self::schema()))
    }

    fn write(&self, row: &mut RowWriter<'_>) {
        AnyValue::write(self, row);
    }

    fn read(value: ValueRef<'_>, _: Option<&Projection>) -> Result<Self, ReadError> {
        let any = match value {
            ValueRef::Record(record) => AnyValue::of(record),
            _ => None,
        };
        any.map(AnyValue::into_owned)
            .ok_or_else(|| refuse::<Self>(value))
    }
}
