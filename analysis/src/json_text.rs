//! Values and lines that are kept as JSON text ([`JSON_TEXT_NAME`]), for filters and sinks that look
//! for their fields.
//!
//! - [`line_text`] and [`value_text`] find the text, and [`read`] takes one level of it apart.
//! - [`opened`] makes a record with the types of the values in the text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

use baler_common::record::{
    AnyValue, BatchBuilder, DynamicRecord, Field, FieldType, JSON_TEXT_FIELD, JSON_TEXT_NAME,
    MAX_FIELDS, MAX_NAME_BYTES, RecordBatch, RecordFields, RecordRef, Schema, Value, ValueRef,
};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Arrays and objects with deeper nesting stay text, so that schemas stay within their limit.
const MAX_NESTING: usize = 6;

/// The most fields of all types that the text of one chunk makes. Further records stay text.
const MAX_CHUNK_FIELDS: usize = 1 << 20;

/// One level of a JSON text. The parts are JSON texts.
#[derive(Debug)]
pub enum Json<'a> {
    /// null
    Null,
    /// true or false
    Bool(bool),
    /// A number as it was written.
    Number(&'a str),
    /// Text.
    Text(Cow<'a, str>),
    /// Text with half of a surrogate pair, in whose place is U+FFFD.
    BrokenText(String),
    /// The items.
    Array(Vec<&'a str>),
    /// Keys and values in the order of the text. A key may come twice; the last one counts.
    Object(Vec<(Cow<'a, str>, &'a str)>),
}

/// Returns the text of a value that is kept as JSON.
pub fn value_text(fields: RecordFields<'_>) -> Option<&str> {
    if fields.schema().name() != JSON_TEXT_NAME {
        return None;
    }
    match only_field(fields)? {
        ValueRef::String(text) => Some(text),
        _ => None,
    }
}

/// Returns the text of a value that is shown as JSON: one that is kept as JSON, or an [`AnyValue`]
/// with JSON text.
pub(crate) fn shown_text(fields: RecordFields<'_>) -> Option<&str> {
    value_text(fields).or_else(|| AnyValue::json(fields))
}

/// Returns the text of a record that is kept as JSON as a whole.
pub fn line_text(fields: RecordFields<'_>) -> Option<&str> {
    match only_field(fields)? {
        ValueRef::Record(text) => value_text(text),
        _ => None,
    }
}

fn only_field(fields: RecordFields<'_>) -> Option<ValueRef<'_>> {
    match fields.schema().fields() {
        [field] if field.name() == JSON_TEXT_FIELD => fields.get(0),
        _ => None,
    }
}

/// Whether records of this type have values that are kept as JSON.
pub fn has_text(schema: &Schema) -> bool {
    fn is_text(field_type: &FieldType) -> bool {
        match field_type {
            FieldType::Optional(inner) | FieldType::List(inner) => is_text(inner),
            FieldType::Record(schema) => schema.name() == JSON_TEXT_NAME || has_text(schema),
            _ => false,
        }
    }
    let mut fields = schema.fields().iter();
    fields.any(|field| is_text(field.field_type()))
}

/// Takes one level of a text apart. Returns `None` if the text is not JSON.
pub fn read(text: &str) -> Option<Json<'_>> {
    let text = text.trim_ascii();
    Some(match text.as_bytes().first()? {
        b'"' => match serde_json::from_str::<Text<'_>>(text).ok()?.0 {
            Ok(text) => Json::Text(text),
            Err(broken) => Json::BrokenText(broken),
        },
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            Json::Array(items.into_iter().map(RawValue::get).collect())
        }
        b'{' => Json::Object(serde_json::from_str::<Members<'_>>(text).ok()?.0),
        b'-' | b'0'..=b'9' => Json::Number(serde_json::from_str::<&RawValue>(text).ok()?.get()),
        _ => match text {
            "null" => Json::Null,
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            _ => return None,
        },
    })
}

/// Text in quotes. The error is text with U+FFFD in place of halves of surrogate pairs.
struct Text<'a>(Result<Cow<'a, str>, String>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl<'de> Visitor<'de> for Bytes {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Text<'de>, E> {
                let text = std::str::from_utf8(bytes).map(Cow::Borrowed);
                Ok(Text(text.map_err(|_| lossy(bytes))))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text<'de>, E> {
                let text = std::str::from_utf8(bytes).map(|text| Cow::Owned(text.to_owned()));
                Ok(Text(text.map_err(|_| lossy(bytes))))
            }
        }

        fn lossy(bytes: &[u8]) -> String {
            String::from_utf8_lossy(bytes).into_owned()
        }

        // As bytes, half of a surrogate pair is no error.
        deserializer.deserialize_bytes(Bytes)
    }
}

struct Members<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    members.push((key.0.unwrap_or_else(Cow::Owned), value.get()));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// Returns a record with a field for each key of its JSON text, and with types that fit its own
/// values. Returns `None` if the record stays as it is.
///
/// Of a key that comes twice, the last value counts. No field can have an earlier one, an empty or
/// long name, or a place beyond the limit of a type. Such keys stay JSON text together, in a last
/// field named `json`.
pub fn opened(record: RecordRef<'_>) -> Option<DynamicRecord> {
    let schema = record.schema();
    let (fields, values) = match line_text(record.fields()) {
        Some(line) => line_fields(line)?,
        None if has_text(schema) => opened_fields(record.fields())?,
        None => return None,
    };
    let schema = Arc::new(Schema::new(schema.name(), fields).ok()?);
    let opened = DynamicRecord::new(schema, record.timestamp(), values).ok()?;
    // A field that is named `json` and has no other beside it would look like a line.
    let is_line = line_text(opened.as_ref().fields()).is_some();
    (!is_line).then_some(opened)
}

type Fields = (Vec<Field>, Vec<Value>);

fn line_fields(line: &str) -> Option<Fields> {
    let Json::Object(members) = read(line)? else {
        return None;
    };
    let mut later = HashSet::new();
    let mut is_last = vec![false; members.len()];
    for ((key, _), is_last) in members.iter().zip(&mut is_last).rev() {
        // The key is not known exactly.
        if key.contains(char::REPLACEMENT_CHARACTER) {
            return None;
        }
        *is_last = later.insert(key);
    }
    let (mut fields, mut values, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for ((key, text), is_last) in members.iter().zip(is_last) {
        if !is_last || !is_name(key) || fields.len() + 1 == MAX_FIELDS {
            rest.push((key, text));
            continue;
        }
        let (field_type, value) = typed(text, MAX_NESTING);
        fields.push(Field::new(&**key, field_type));
        values.push(value);
    }
    if !rest.is_empty() {
        let mut name = JSON_TEXT_FIELD.to_owned();
        while later.contains(&Cow::from(&name)) {
            name.insert(0, '_');
        }
        let members = rest.into_iter().map(|(key, text)| {
            let key = serde_json::Value::from(&**key);
            format!("{key}:{text}")
        });
        let (field_type, value) = kept(&format!("{{{}}}", members.collect::<Vec<_>>().join(",")));
        fields.push(Field::new(name, field_type));
        values.push(value);
    }
    Some((fields, values))
}

/// Returns the fields of a record with the types of their own values.
fn opened_fields(fields: RecordFields<'_>) -> Option<Fields> {
    let values = fields.schema().fields().iter().zip(fields.values());
    let mut opened = (Vec::new(), Vec::new());
    for (field, (_, value)) in values {
        let (field_type, value) = opened_value(field.field_type(), value)?;
        let of_type = Field::new(field.name(), field_type);
        opened.0.push(of_type.with_role(field.role()));
        opened.1.push(value);
    }
    Some(opened)
}

fn opened_value(field_type: &FieldType, value: ValueRef<'_>) -> Option<(FieldType, Value)> {
    Some(match (field_type, value) {
        (FieldType::Optional(inner), ValueRef::Null) => match &**inner {
            FieldType::Record(text) if text.name() == JSON_TEXT_NAME => null(),
            _ => (field_type.clone(), Value::Null),
        },
        (FieldType::Optional(inner), value) => match opened_value(inner, value)? {
            (inner @ FieldType::Optional(_), value) => (inner, value),
            (inner, value) => (inner.optional(), value),
        },
        (FieldType::Record(schema), ValueRef::Record(fields)) => {
            if let Some(text) = value_text(fields) {
                return Some(typed(text, MAX_NESTING));
            }
            let (fields, values) = opened_fields(fields)?;
            let schema = Schema::new(schema.name(), fields).ok()?;
            (FieldType::Record(Arc::new(schema)), Value::Record(values))
        }
        (FieldType::List(item), ValueRef::List(list)) => {
            let items = list.iter().map(|value| opened_value(item, value));
            let items = list_of(items.collect::<Option<_>>()?);
            items.unwrap_or_else(|| (field_type.clone(), value.to_value()))
        }
        _ => (field_type.clone(), value.to_value()),
    })
}

/// Returns the value of a JSON text in a type of its own.
fn typed(text: &str, nesting: usize) -> (FieldType, Value) {
    let Some(json) = read(text) else {
        return kept(text);
    };
    let typed = match json {
        Json::Null => Some(null()),
        Json::Bool(value) => Some((FieldType::Bool, value.into())),
        Json::Number(number) => typed_number(number),
        Json::Text(text) => Some((FieldType::String, (*text).into())),
        Json::Array(items) if nesting > 0 => {
            let items = items.into_iter().map(|item| typed(item, nesting - 1));
            list_of(items.collect())
        }
        Json::Object(members) if nesting > 0 => {
            let members = members.into_iter().map(|(key, value)| {
                let (field_type, value) = typed(value, nesting - 1);
                (Field::new(&*key, field_type), value)
            });
            let (fields, values): Fields = members.unzip();
            let is_exact = |it: &Field| !it.name().contains(char::REPLACEMENT_CHARACTER);
            let schema = fields.iter().all(is_exact).then_some("object");
            let schema = schema.and_then(|name| Schema::new(name, fields).ok());
            schema.map(|it| (FieldType::Record(Arc::new(it)), Value::Record(values)))
        }
        Json::BrokenText(_) | Json::Array(_) | Json::Object(_) => None,
    };
    typed.unwrap_or_else(|| kept(text))
}

/// Returns a number in the first type that holds it exactly.
fn typed_number(text: &str) -> Option<(FieldType, Value)> {
    // A whole number has no negative zero.
    if text != "-0" {
        if let Ok(number) = text.parse::<i64>() {
            return Some((FieldType::I64, number.into()));
        }
        if let Ok(number) = text.parse::<u64>() {
            return Some((FieldType::U64, number.into()));
        }
    }
    let number: f64 = text.parse().ok()?;
    // Any 15 digits fit into 53 bits, unless the number is too small for all bits.
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_exact = digits <= 15 && (number == 0.0 || number.abs() > 1e-300);
    let is_exact = is_exact || number.to_string() == text;
    (number.is_finite() && is_exact).then(|| (FieldType::F64, number.into()))
}

/// Returns a list, if one type fits all items.
fn list_of(items: Vec<(FieldType, Value)>) -> Option<(FieldType, Value)> {
    let (types, values): (Vec<_>, Vec<_>) = items.into_iter().unzip();
    let item = types.first().cloned().unwrap_or(FieldType::String);
    let is_same = types.iter().all(|it| *it == item);
    is_same.then(|| (item.list(), Value::List(values)))
}

/// A null shows no type.
fn null() -> (FieldType, Value) {
    (FieldType::String.optional(), Value::Null)
}

/// Keeps a JSON text as it is.
fn kept(text: &str) -> (FieldType, Value) {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let field = Field::new(JSON_TEXT_FIELD, FieldType::String);
        Arc::new(Schema::new(JSON_TEXT_NAME, vec![field]).expect("a name, and one field"))
    });
    let field_type = FieldType::Record(Arc::clone(&SCHEMA));
    (field_type, Value::Record(vec![text.into()]))
}

fn is_name(key: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&key.len())
}

/// Returns the records of a batch, [opened](opened), or `None` if none has JSON text.
pub(crate) fn opened_batch(batch: &RecordBatch) -> Option<RecordBatch> {
    if !batch.tables().iter().any(|table| has_text(table.schema())) {
        return None;
    }
    let mut known = HashSet::new();
    let mut room = MAX_CHUNK_FIELDS;
    let mut builder = BatchBuilder::new();
    for record in batch.records() {
        let opened = opened(record).filter(|opened| {
            let schema = opened.schema();
            if known.contains(&schema.fingerprint()) {
                return true;
            }
            let left = room.checked_sub(field_count(schema));
            left.inspect(|left| {
                room = *left;
                known.insert(schema.fingerprint());
            })
            .is_some()
        });
        let record = opened.as_ref().map_or(record, DynamicRecord::as_ref);
        let pushed = builder.push_ref(record);
        pushed.expect("a record takes no more room than its text");
    }
    Some(builder.take())
}

/// Returns the number of fields of a type, including nested ones.
fn field_count(schema: &Schema) -> usize {
    fn inner(field_type: &FieldType) -> usize {
        match field_type {
            FieldType::Optional(item) | FieldType::List(item) | FieldType::Map(item) => inner(item),
            FieldType::Record(schema) => field_count(schema),
            _ => 0,
        }
    }
    let fields = schema.fields().iter();
    fields.map(|field| 1 + inner(field.field_type())).sum()
}

#[cfg(test)]
mod tests;
