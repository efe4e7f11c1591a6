//! A record as JSON.
//!
//! `{"type": "...", "timestamp": n or null, "fields": {"name": value, ...}}`. Integers are exact at
//! 64 bits. NaN and infinities are the strings `NaN`, `Infinity`, `-Infinity`. Bytes are base64, a
//! char is a string, an enum is its variant's name, and an absent optional is null. A map is an
//! object; a key that comes twice is written twice, and readers of JSON take the last value. An
//! [`AnyValue`] is its plain value. JSON text ([`json_text`](crate::json_text)) is written as JSON,
//! with U+FFFD for halves of surrogate pairs, which many readers refuse.

use baler_common::record::{AnyValue, JSON_TEXT_FIELD, ListRef, RecordFields, RecordRef, ValueRef};
use baler_common::transport::ChunkIdentity;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};
use serde_json::value::RawValue;

use crate::json_text::{line_text, shown_text};

/// Serializes a record in the form of this module.
#[derive(Debug, Clone, Copy)]
pub struct RecordJson<'a>(pub RecordRef<'a>);

impl Serialize for RecordJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_struct("record", 3)?;
        record.serialize_field("type", self.0.type_name())?;
        record.serialize_field("timestamp", &self.0.timestamp())?;
        record.serialize_field("fields", &RecordOrLine(self.0.fields()))?;
        record.end()
    }
}

/// Serializes a record in the form of this module, together with its identity:
/// `"identity": {"producer": "…", "epoch": "…", "lane": n, "sequence": n, "index": n}`, or null.
#[derive(Debug, Clone, Copy)]
pub struct IdentifiedJson<'a> {
    /// The record.
    pub record: RecordRef<'a>,
    /// Its chunk's identity, if the container or the medium has it.
    pub chunk: Option<ChunkIdentity>,
    /// Its position in the chunk.
    pub index: u32,
}

impl Serialize for IdentifiedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_struct("record", 4)?;
        record.serialize_field("type", self.record.type_name())?;
        record.serialize_field("timestamp", &self.record.timestamp())?;
        let identity = self.chunk.map(|chunk| Identity {
            chunk,
            index: self.index,
        });
        record.serialize_field("identity", &identity)?;
        record.serialize_field("fields", &RecordOrLine(self.record.fields()))?;
        record.end()
    }
}

struct Identity {
    chunk: ChunkIdentity,
    index: u32,
}

impl Serialize for Identity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut identity = serializer.serialize_struct("identity", 5)?;
        identity.serialize_field("producer", &self.chunk.producer.to_string())?;
        identity.serialize_field("epoch", &self.chunk.epoch.to_string())?;
        identity.serialize_field("lane", &self.chunk.lane)?;
        identity.serialize_field("sequence", &self.chunk.sequence)?;
        identity.serialize_field("index", &self.index)?;
        identity.end()
    }
}

/// The fields of a record; for a line that fits no schema, the line itself.
pub(super) struct RecordOrLine<'a>(pub(super) RecordFields<'a>);

impl Serialize for RecordOrLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match line_text(self.0).and_then(raw) {
            Some(line) => line.serialize(serializer),
            None => Fields(self.0).serialize(serializer),
        }
    }
}

struct Fields<'a>(RecordFields<'a>);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.schema().fields().len()))?;
        for (name, value) in self.0.values() {
            map.serialize_entry(name, &ValueJson(value))?;
        }
        map.end()
    }
}

/// Serializes a value in the form of this module.
pub(super) struct ValueJson<'a>(pub(super) ValueRef<'a>);

impl Serialize for ValueJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ValueRef::Null => serializer.serialize_unit(),
            ValueRef::Bool(value) => serializer.serialize_bool(value),
            ValueRef::Signed(value) => serializer.serialize_i64(value),
            ValueRef::Unsigned(value) => serializer.serialize_u64(value),
            ValueRef::F32(value) if value.is_finite() => serializer.serialize_f32(value),
            ValueRef::F32(value) => serializer.serialize_str(not_finite(f64::from(value))),
            ValueRef::F64(value) if value.is_finite() => serializer.serialize_f64(value),
            ValueRef::F64(value) => serializer.serialize_str(not_finite(value)),
            ValueRef::Char(value) => serializer.serialize_char(value),
            ValueRef::String(value) => serializer.serialize_str(value),
            ValueRef::Bytes(value) => serializer.serialize_str(&STANDARD.encode(value)),
            ValueRef::Enum(value) => serializer.serialize_str(value.name().unwrap_or("")),
            ValueRef::List(list) => serialize_list(list, serializer),
            ValueRef::Map(map) => {
                serializer.collect_map(map.iter().map(|(key, value)| (key, ValueJson(value))))
            }
            ValueRef::Record(fields) => match shown_text(fields).and_then(raw) {
                Some(json) => json.serialize(serializer),
                None => match AnyValue::plain(fields) {
                    Some(value) => ValueJson(value).serialize(serializer),
                    None => Fields(fields).serialize(serializer),
                },
            },
        }
    }
}

/// Returns JSON text as JSON. `None` if it is not JSON, or has line breaks, which would split a line.
fn raw(text: &str) -> Option<Box<RawValue>> {
    if text.contains(['\n', '\r']) {
        return None;
    }
    RawValue::from_string(with_whole_pairs(text)).ok()
}

/// Writes U+FFFD for each half of a surrogate pair in JSON text: `\ud83d` becomes `\ufffd`.
fn with_whole_pairs(text: &str) -> String {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let (length, is_whole) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (12, true),
            (Some(0xd800..0xe000), _) => (6, false),
            _ => (2, true),
        };
        let (escape, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        whole.push_str(if is_whole { escape } else { "\\ufffd" });
        rest = after;
    }
    whole + rest
}

/// Returns the line that a record was made of, if it holds it: JSON text, or the text of a record
/// with one field.
pub(super) fn line_of(fields: RecordFields<'_>) -> Option<&str> {
    let mut values = fields.values();
    let text = match (values.next()?, values.next()) {
        ((name, ValueRef::String(text)), None) if name != JSON_TEXT_FIELD => text,
        _ => line_text(fields)?,
    };
    (!text.contains(['\n', '\r'])).then_some(text)
}

/// Returns a value as text: text as it is, and JSON of other values. `None` if there is no value.
#[cfg(feature = "arrow")]
pub(crate) fn text_of(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::String(text) => Some(text.to_owned()),
        other => {
            let json = serde_json::to_string(&ValueJson(other)).expect("memory takes any value");
            // Bytes, and numbers that are not finite, are JSON strings without escapes.
            Some(json.trim_matches('"').to_owned())
        }
    }
}

fn serialize_list<S: Serializer>(list: ListRef<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(list.iter().map(ValueJson))
}

/// The names that Java and Kieker's text log use.
fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}
