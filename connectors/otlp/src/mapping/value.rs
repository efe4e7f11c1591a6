//! Attributes, and values of any type.

use baler_common::record::{AnyValue, ValueRef};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use opentelemetry_proto::tonic::common::v1::{self as otlp, any_value::Value};
use serde_json::{Value as Json, json};

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
            Some(value @ (Value::ArrayValue(_) | Value::KvlistValue(_))) => {
                Self::Json(json_of(&value, MAX_DEPTH)?.to_string().into())
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
                return of_json(&json).ok_or(Malformed::Value);
            }
        };
        Ok(otlp::AnyValue { value })
    }
}

/// Returns OTLP's JSON of a value with at most this number of further levels.
fn json_of(value: &Value, levels: usize) -> Result<Json, Malformed> {
    let inner = |any: &otlp::AnyValue| {
        let levels = levels.checked_sub(1).ok_or(Malformed::Depth)?;
        let value = any.value.as_ref();
        value.map_or_else(|| Ok(json!({})), |it| json_of(it, levels))
    };
    Ok(match value {
        Value::BoolValue(value) => json!({ "boolValue": value }),
        Value::IntValue(value) => json!({ "intValue": value.to_string() }),
        Value::DoubleValue(value) if value.is_nan() => json!({ "doubleValue": "NaN" }),
        Value::DoubleValue(value) if value.is_infinite() => {
            let sign = if *value > 0.0 { "" } else { "-" };
            json!({ "doubleValue": format!("{sign}Infinity") })
        }
        Value::DoubleValue(value) => json!({ "doubleValue": value }),
        Value::StringValue(value) => json!({ "stringValue": value }),
        Value::BytesValue(value) => json!({ "bytesValue": BASE64_STANDARD.encode(value) }),
        Value::ArrayValue(array) => {
            let values: Result<Vec<_>, _> = array.values.iter().map(inner).collect();
            json!({ "arrayValue": { "values": values? } })
        }
        Value::KvlistValue(list) => {
            let empty = otlp::AnyValue::default();
            let entry = |it: &otlp::KeyValue| {
                let value = inner(it.value.as_ref().unwrap_or(&empty))?;
                Ok(json!({ "key": it.key, "value": value }))
            };
            let values: Result<Vec<_>, Malformed> = list.values.iter().map(entry).collect();
            json!({ "kvlistValue": { "values": values? } })
        }
        Value::StringValueStrindex(_) => json!({}),
    })
}

/// Reads the output of [`json_of`].
fn of_json(json: &Json) -> Option<otlp::AnyValue> {
    let mut fields = json.as_object()?.iter();
    let Some((name, json)) = fields.next() else {
        return Some(otlp::AnyValue { value: None });
    };
    let values = || {
        json.get("values")
            .map_or(Some([].as_slice()), |it| Some(it.as_array()?))
    };
    let value = match name.as_str() {
        "boolValue" => Value::BoolValue(json.as_bool()?),
        "intValue" => {
            let number = json.as_i64();
            Value::IntValue(number.or_else(|| json.as_str()?.parse().ok())?)
        }
        "doubleValue" => Value::DoubleValue(match json.as_str() {
            Some("NaN") => f64::NAN,
            Some("Infinity") => f64::INFINITY,
            Some("-Infinity") => f64::NEG_INFINITY,
            _ => json.as_f64()?,
        }),
        "stringValue" => Value::StringValue(json.as_str()?.to_owned()),
        "bytesValue" => Value::BytesValue(BASE64_STANDARD.decode(json.as_str()?).ok()?),
        "arrayValue" => Value::ArrayValue(otlp::ArrayValue {
            values: values()?.iter().map(of_json).collect::<Option<_>>()?,
        }),
        "kvlistValue" => {
            let entries = values()?.iter().map(|entry| {
                Some(otlp::KeyValue {
                    key: entry.get("key")?.as_str()?.to_owned(),
                    value: Some(of_json(entry.get("value")?)?),
                    key_strindex: 0,
                })
            });
            let values = entries.collect::<Option<_>>()?;
            Value::KvlistValue(otlp::KeyValueList { values })
        }
        _ => return None,
    };
    Some(otlp::AnyValue { value: Some(value) }).filter(|_| fields.next().is_none())
}
