//! Attributes, and values of any type.

use baler_common::record::{AnyValue, ValueRef};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use opentelemetry_proto::tonic::common::v1::{self as otlp, any_value::Value};
use serde_json::{Map, Value as Json, json};

use crate::convert::Otlp;
use crate::error::Malformed;
use crate::types::Attributes;

/// The most levels of arrays and lists within a value. With them the JSON text stays within the limit
/// of its parser, which is 128 levels of JSON.
const MAX_DEPTH: usize = 32;

impl Otlp<Vec<otlp::KeyValue>> for Attributes {
    fn from_otlp(message: Vec<otlp::KeyValue>) -> Result<Self, Malformed> {
        let entries = message.into_iter().map(|it| {
            let value = it.value.map(Otlp::from_otlp).transpose()?;
            Ok((it.key, value.unwrap_or_default()))
        });
        entries.collect::<Result<_, _>>().map(Self)
    }

    fn into_otlp(self) -> Result<Vec<otlp::KeyValue>, Malformed> {
        let entries = self.0.into_iter().map(|(key, value)| {
            Ok(otlp::KeyValue {
                key,
                value: Some(value.into_otlp()?),
                key_strindex: 0,
            })
        });
        entries.collect()
    }
}

/// Makes attributes of fields; those without a value are left out.
pub(crate) fn attributes_of<'a>(
    fields: impl Iterator<Item = (&'a str, ValueRef<'a>)>,
) -> Result<Attributes, Malformed> {
    let present = fields.filter(|(_, value)| !matches!(value, ValueRef::Null));
    let entries = present.map(|(name, value)| Ok((name.into(), Otlp::from_otlp(any(value))?)));
    entries.collect::<Result<_, _>>().map(Attributes)
}

/// Returns the value of a field in OTLP's form.
fn any(value: ValueRef<'_>) -> otlp::AnyValue {
    let entry = |(key, value): (&str, _)| otlp::KeyValue {
        key: key.into(),
        value: Some(any(value)),
        key_strindex: 0,
    };
    let value = match value {
        ValueRef::Null => None,
        ValueRef::Bool(value) => Some(Value::BoolValue(value)),
        ValueRef::Signed(value) => Some(Value::IntValue(value)),
        ValueRef::Unsigned(value) => Some(match i64::try_from(value) {
            Ok(value) => Value::IntValue(value),
            Err(_) => Value::StringValue(value.to_string()),
        }),
        ValueRef::F32(value) => Some(Value::DoubleValue(value.into())),
        ValueRef::F64(value) => Some(Value::DoubleValue(value)),
        ValueRef::Char(value) => Some(Value::StringValue(value.into())),
        ValueRef::String(value) => Some(Value::StringValue(value.into())),
        ValueRef::Bytes(value) => Some(Value::BytesValue(value.into())),
        ValueRef::Enum(value) => value.name().map(|name| Value::StringValue(name.into())),
        ValueRef::List(list) => Some(Value::ArrayValue(otlp::ArrayValue {
            values: list.iter().map(any).collect(),
        })),
        ValueRef::Record(record) => match AnyValue::plain(record) {
            Some(value) => return any(value),
            None => Some(Value::KvlistValue(otlp::KeyValueList {
                values: record.values().map(entry).collect(),
            })),
        },
        ValueRef::Map(map) => Some(Value::KvlistValue(otlp::KeyValueList {
            values: map.iter().map(entry).collect(),
        })),
    };
    otlp::AnyValue { value }
}

impl Otlp<otlp::AnyValue> for AnyValue<'static> {
    fn from_otlp(message: otlp::AnyValue) -> Result<Self, Malformed> {
        Ok(match message.value {
            // The latter belongs to profiles: everywhere else it counts as absent.
            None | Some(Value::StringValueStrindex(_)) => Self::Empty,
            Some(Value::BoolValue(value)) => Self::Bool(value),
            Some(Value::IntValue(value)) => Self::I64(value),
            Some(Value::DoubleValue(value)) => Self::F64(value),
            Some(Value::StringValue(value)) => Self::String(value.into()),
            Some(Value::BytesValue(value)) => Self::Bytes(value.into()),
            Some(Value::ArrayValue(_) | Value::KvlistValue(_)) => {
                Self::Json(json_of(&message, MAX_DEPTH)?.to_string().into())
            }
        })
    }

    fn into_otlp(self) -> Result<otlp::AnyValue, Malformed> {
        let value = match self {
            Self::Empty => None,
            Self::Bool(value) => Some(Value::BoolValue(value)),
            Self::I64(value) => Some(Value::IntValue(value)),
            Self::F64(value) => Some(Value::DoubleValue(value)),
            Self::String(value) => Some(Value::StringValue(value.into())),
            Self::Bytes(value) => Some(Value::BytesValue(value.into())),
            Self::Json(text) => {
                let json = serde_json::from_str(&text).map_err(|_| Malformed::Value)?;
                return of_json(json).ok_or(Malformed::Value);
            }
        };
        Ok(otlp::AnyValue { value })
    }
}

/// Returns a value as JSON, with at most this number of further levels.
///
/// What JSON lacks is an object with one entry, which has the name of the value's type in OTLP.
fn json_of(any: &otlp::AnyValue, levels: usize) -> Result<Json, Malformed> {
    let inner = |any: &_| json_of(any, levels.checked_sub(1).ok_or(Malformed::Depth)?);
    Ok(match any.value.as_ref() {
        None | Some(Value::StringValueStrindex(_)) => Json::Null,
        Some(Value::BoolValue(value)) => Json::from(*value),
        Some(Value::IntValue(value)) => Json::from(*value),
        Some(Value::DoubleValue(value)) if value.is_finite() => Json::from(*value),
        Some(Value::DoubleValue(value)) => {
            json!({ DOUBLE: value.to_string().replace("inf", "Infinity") })
        }
        Some(Value::StringValue(value)) => Json::from(value.as_str()),
        Some(Value::BytesValue(value)) => json!({ BYTES: BASE64_STANDARD.encode(value) }),
        Some(Value::ArrayValue(array)) => {
            array.values.iter().map(inner).collect::<Result<_, _>>()?
        }
        Some(Value::KvlistValue(list)) => {
            let empty = otlp::AnyValue::default();
            let entry = |it: &otlp::KeyValue| {
                let value = inner(it.value.as_ref().unwrap_or(&empty))?;
                Ok((it.key.clone(), value))
            };
            let entries = list.values.iter().map(entry);
            let entries = entries.collect::<Result<Vec<_>, Malformed>>()?;
            let object: Map<_, _> = entries.iter().cloned().collect();
            let is_plain = object.len() == entries.len() && special(&object).is_none();
            match is_plain {
                true => Json::Object(object),
                false => json!({ ENTRIES: entries }),
            }
        }
    })
}

/// Reads the output of [`json_of`], and any other JSON.
fn of_json(json: Json) -> Option<otlp::AnyValue> {
    let value = match json {
        Json::Null => return Some(otlp::AnyValue { value: None }),
        Json::Bool(value) => Value::BoolValue(value),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => Value::IntValue(value),
            (None, Some(value)) if number.is_f64() => Value::DoubleValue(value),
            _ => Value::StringValue(number.to_string()),
        },
        Json::String(value) => Value::StringValue(value),
        Json::Array(values) => Value::ArrayValue(otlp::ArrayValue {
            values: values.into_iter().map(of_json).collect::<Option<_>>()?,
        }),
        Json::Object(object) => match special(&object).and_then(of_special) {
            Some(value) => value,
            None => list_of(object.into_iter().collect())?,
        },
    };
    Some(otlp::AnyValue { value: Some(value) })
}

/// Reads a value that JSON lacks. `None` if the object of another program only looks like one.
fn of_special((name, json): (&str, &Json)) -> Option<Value> {
    match name {
        DOUBLE => {
            let number: f64 = json.as_str()?.parse().ok()?;
            (!number.is_finite()).then_some(Value::DoubleValue(number))
        }
        BYTES => Some(Value::BytesValue(
            BASE64_STANDARD.decode(json.as_str()?).ok()?,
        )),
        _ => list_of(serde_json::from_value(json.clone()).ok()?),
    }
}

fn list_of(entries: Vec<(String, Json)>) -> Option<Value> {
    let entries = entries.into_iter().map(|(key, value)| {
        Some(otlp::KeyValue {
            key,
            value: Some(of_json(value)?),
            key_strindex: 0,
        })
    });
    let values = entries.collect::<Option<_>>()?;
    Some(Value::KvlistValue(otlp::KeyValueList { values }))
}

/// A number that is not finite: its name.
const DOUBLE: &str = "doubleValue";
/// Bytes: base64.
const BYTES: &str = "bytesValue";
/// A list with a key that comes twice, or with one entry that has a name of these: pairs.
const ENTRIES: &str = "kvlistValue";

/// Returns the entry of an object that stands for a value which JSON lacks.
fn special(object: &Map<String, Json>) -> Option<(&'static str, &Json)> {
    let (key, value) = object.iter().next().filter(|_| object.len() == 1)?;
    let name = [DOUBLE, BYTES, ENTRIES].into_iter().find(|it| it == key)?;
    Some((name, value))
}
