//! The values of CEL. The texts and nested records of a record are borrowed from it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use crate::json_text::{self, Json};
use baler_common::record::{AnyValue, MapRef, RecordFields, ValueRef};

/// The deepest list of lists in JSON text that is read.
const MAX_NESTING: usize = 64;

/// The longest text of an example, in characters.
const MAX_EXAMPLE: usize = 60;

const TYPES: &str = "bool bytes double int list map null_type optional_type string type uint";

#[derive(Debug, Clone)]
pub(super) enum Value<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Cow<'v, str>),
    Bytes(Cow<'v, [u8]>),
    List(Arc<[Self]>),
    Map(Map<'v>),
    Optional(Option<Arc<Self>>),
    /// A type, by its name.
    Type(&'static str),
    /// JSON text that cannot be read. Nothing is equal to it.
    Unreadable(&'v str),
}

#[derive(Debug, Clone)]
pub(super) enum Map<'v> {
    Made(Arc<[(Value<'v>, Value<'v>)]>),
    Record(RecordFields<'v>),
    Entries(MapRef<'v>),
    /// Keys and JSON texts. Of a key that comes twice, the last value counts.
    Json(Arc<[(Cow<'v, str>, &'v str)]>),
}

impl<'v> From<ValueRef<'v>> for Value<'v> {
    /// Unsigned integers become signed ones if they fit, so that they can be added to plain
    /// numbers. Enums become the names of their variants.
    fn from(field: ValueRef<'v>) -> Self {
        match field {
            ValueRef::Null => Self::Null,
            ValueRef::Bool(value) => Self::Bool(value),
            ValueRef::Signed(value) => Self::Int(value),
            ValueRef::Unsigned(value) => Self::unsigned(value),
            ValueRef::F32(value) => Self::Double(value.into()),
            ValueRef::F64(value) => Self::Double(value),
            ValueRef::Char(value) => Self::String(value.to_string().into()),
            ValueRef::String(value) => Self::String(value.into()),
            ValueRef::Bytes(value) => Self::Bytes(value.into()),
            // A newer writer may have variants without a name here.
            ValueRef::Enum(value) => value
                .name()
                .map_or(Self::Null, |it| Self::String(it.into())),
            ValueRef::List(items) => Self::list(items.iter().map(Self::from)),
            ValueRef::Map(map) => Self::Map(Map::Entries(map)),
            ValueRef::Record(fields) => match json_text::shown_text(fields) {
                Some(text) => Self::of_json(text, MAX_NESTING),
                None => match AnyValue::plain(fields) {
                    Some(value) => value.into(),
                    None => Self::Map(Map::Record(fields)),
                },
            },
        }
    }
}

impl<'v> Value<'v> {
    pub(super) fn unsigned(value: u64) -> Self {
        i64::try_from(value).map_or(Self::Uint(value), Self::Int)
    }

    /// Returns the value of a JSON text. A number that fits no type is rounded.
    fn of_json(text: &'v str, nesting: usize) -> Self {
        match json_text::read(text) {
            Some(Json::Null) => Self::Null,
            Some(Json::Bool(value)) => Self::Bool(value),
            Some(Json::Number(number)) => match number.parse() {
                Ok(number) => Self::Int(number),
                Err(_) => match number.parse() {
                    Ok(number) => Self::Uint(number),
                    Err(_) => number.parse().map_or(Self::Unreadable(text), Self::Double),
                },
            },
            Some(Json::Text(text)) => Self::String(text),
            Some(Json::BrokenText(text)) => Self::String(text.into()),
            Some(Json::Array(items)) if nesting > 0 => {
                let item = |text| Self::of_json(text, nesting - 1);
                Self::list(items.into_iter().map(item))
            }
            Some(Json::Object(members)) => Self::Map(Map::Json(members.into())),
            Some(Json::Array(_)) | None => Self::Unreadable(text),
        }
    }

    /// Returns the value for a message: short, on one line.
    pub(super) fn example(&self) -> String {
        let text = match self {
            Self::String(text) => format!("{text:?}"),
            Self::Bool(value) => value.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Uint(number) => number.to_string(),
            Self::Double(number) => number.to_string(),
            Self::Unreadable(text) => (*text).to_owned(),
            other => return other.type_name().to_owned(),
        };
        match text.chars().nth(MAX_EXAMPLE) {
            Some(_) => format!("{}...", text.chars().take(MAX_EXAMPLE).collect::<String>()),
            None => text,
        }
    }

    /// A number of items, letters or bytes.
    pub(super) fn size(count: usize) -> Self {
        Self::unsigned(count as u64)
    }

    pub(super) fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self::List(items.into_iter().collect())
    }

    pub(super) fn type_named(name: &str) -> Option<Self> {
        let mut types = TYPES.split(' ');
        types.find(|it| *it == name).map(Self::Type)
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Unreadable(_) => "unreadable",
        }
    }

    /// Returns the same value without a copy of its text.
    pub(super) fn borrowed(&self) -> Value<'_> {
        match self {
            Self::String(text) => Value::String(Cow::Borrowed(text)),
            Self::Bytes(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
            other => other.clone(),
        }
    }

    /// Whether it is the zero or the empty value of its type.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(_) | Self::Uint(_) | Self::Double(_) => self.equals(&Value::Int(0)),
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Map(map) => map.len() == 0,
            Self::Optional(_) | Self::Type(_) | Self::Unreadable(_) => false,
        }
    }

    pub(super) fn is_nan(&self) -> bool {
        matches!(self, Self::Double(number) if number.is_nan())
    }

    /// Whether a map may have it as a key.
    pub(super) fn is_key(&self) -> bool {
        matches!(
            self,
            Self::Bool(_) | Self::Int(_) | Self::Uint(_) | Self::String(_)
        )
    }

    /// Returns the value as a condition of an operator or macro with this name.
    pub(super) fn condition(&self, of: &str) -> Result<bool, EvaluationError> {
        match self {
            Self::Bool(holds) => Ok(*holds),
            other => Err(EvaluationError::no_overload(of, [other])),
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some((*number).into()),
            Self::Uint(number) => Some((*number).into()),
            _ => None,
        }
    }

    pub(super) fn equals(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Self::Null, Value::Null) => true,
            (Self::Type(one), Value::Type(other)) => one == other,
            (Self::List(one), Value::List(other)) => {
                one.len() == other.len() && one.iter().zip(&**other).all(|(a, b)| a.equals(b))
            }
            (Self::Map(one), Value::Map(other)) => {
                one.len() == other.len()
                    && one
                        .iter()
                        .all(|(key, value)| other.get(&key).is_some_and(|it| it.equals(&value)))
            }
            (Self::Optional(None), Value::Optional(None)) => true,
            (Self::Optional(Some(one)), Value::Optional(Some(other))) => one.equals(other),
            _ => self.compare(other) == Some(Ordering::Equal),
        }
    }

    /// Compares two values. Returns `None` if there is no order between them.
    pub(super) fn compare(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
            (Self::String(one), Value::String(other)) => Some(one.cmp(other)),
            (Self::Bytes(one), Value::Bytes(other)) => Some(one.cmp(other)),
            (Self::Double(one), Value::Double(other)) => one.partial_cmp(other),
            (Self::Double(one), _) => compare_mixed(other.integer()?, *one).map(Ordering::reverse),
            (_, Value::Double(other)) => compare_mixed(self.integer()?, *other),
            _ => Some(self.integer()?.cmp(&other.integer()?)),
        }
    }

    /// Returns the item of a list, or the value of a key of a map, if there is one.
    ///
    /// # Errors
    ///
    /// The value is neither, or the key is of another type.
    pub(super) fn get(&self, key: &Value<'_>) -> Result<Option<Self>, EvaluationError> {
        match (self, key) {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a list has no index beyond"
            )]
            (Self::List(list), Value::Double(number)) if number.fract() == 0.0 => {
                let index = usize::try_from(*number as i128);
                Ok(index.ok().and_then(|it| list.get(it)).cloned())
            }
            (Self::List(list), Value::Int(_) | Value::Uint(_)) => {
                let index = key.integer().and_then(|it| usize::try_from(it).ok());
                Ok(index.and_then(|it| list.get(it)).cloned())
            }
            (Self::Map(map), Value::Double(_)) => Ok(map.get(key)),
            (Self::Map(map), key) if key.is_key() => Ok(map.get(key)),
            _ => Err(EvaluationError::no_overload("[]", [self, key])),
        }
    }

    /// Returns the items of a list, or the keys of a map.
    pub(super) fn items(&self) -> Option<Box<dyn Iterator<Item = Self> + '_>> {
        match self {
            Self::List(list) => Some(Box::new(list.iter().cloned())),
            Self::Map(map) => Some(Box::new(map.iter().map(|(key, _)| key))),
            _ => None,
        }
    }
}

/// Compares an integer of 64 bits with a double, without rounding it. Returns `None` for NaN.
fn compare_mixed(integer: i128, double: f64) -> Option<Ordering> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "beyond 64 bits it saturates"
    )]
    let floor = double.floor() as i128;
    match integer.cmp(&floor) {
        _ if double.is_nan() => None,
        Ordering::Equal => double.floor().partial_cmp(&double),
        different => Some(different),
    }
}

impl<'v> Map<'v> {
    /// Returns the fields of a record, also if it is kept as JSON text.
    pub(super) fn of_record(fields: RecordFields<'v>) -> Self {
        match json_text::line_text(fields).and_then(json_text::read) {
            Some(Json::Object(members)) => Self::Json(members.into()),
            _ => Self::Record(fields),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json(members) => members.len(),
            Self::Made(entries) => entries.len(),
            Self::Record(fields) => fields.schema().fields().len(),
            Self::Entries(map) => map.len(),
        }
    }

    /// Returns the value of a field.
    pub(super) fn field(&self, name: &str) -> Option<Value<'v>> {
        match self {
            Self::Made(_) => None,
            Self::Record(fields) => fields.field(name).map(Value::from),
            Self::Entries(map) => map.get(name).map(Value::from),
            Self::Json(members) => {
                let member = members.iter().rfind(|(key, _)| key == name);
                member.map(|(_, text)| Value::of_json(text, MAX_NESTING))
            }
        }
    }

    fn get(&self, key: &Value<'_>) -> Option<Value<'v>> {
        match (self, key) {
            (Self::Made(entries), key) => {
                let entry = entries.iter().find(|(it, _)| it.equals(key));
                entry.map(|(_, value)| value.clone())
            }
            (_, Value::String(name)) => self.field(name),
            _ => None,
        }
    }

    /// Returns keys and values.
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = (Value<'v>, Value<'v>)> + '_> {
        match self {
            Self::Made(entries) => Box::new(entries.iter().cloned()),
            Self::Json(members) => Box::new(members.iter().map(|(key, text)| {
                let key = Value::String(key.clone());
                (key, Value::of_json(text, MAX_NESTING))
            })),
            Self::Entries(map) => Box::new(
                map.iter()
                    .map(|(key, value)| (Value::String(key.into()), value.into())),
            ),
            Self::Record(fields) => {
                let name = |name: &'v str| Value::String(name.into());
                Box::new(
                    fields
                        .values()
                        .map(move |(key, value)| (name(key), value.into())),
                )
            }
        }
    }
}

/// The reason why an expression has no value.
#[derive(Debug)]
pub(super) enum EvaluationError {
    Failed {
        reason: String,
        /// The first field in the place that failed.
        field: Option<FieldValue>,
    },
    /// The record lacks a field, or a map lacks a key.
    Missing,
}

/// A field and its value, for a message.
#[derive(Debug)]
pub(super) struct FieldValue {
    pub(super) name: String,
    pub(super) type_name: &'static str,
    pub(super) example: String,
}

impl EvaluationError {
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed {
            reason: reason.into(),
            field: None,
        }
    }

    /// An operator or function that does not take values of these types.
    pub(super) fn no_overload<'a, 'v: 'a>(
        name: &str,
        values: impl IntoIterator<Item = &'a Value<'v>>,
    ) -> Self {
        let types: Vec<_> = values.into_iter().map(Value::type_name).collect();
        Self::failed(format!("`{name}` does not take ({})", types.join(", ")))
    }

    pub(super) fn overflow(operator: &str) -> Self {
        Self::failed(format!(
            "the result of `{operator}` does not fit into 64 bits"
        ))
    }
}
