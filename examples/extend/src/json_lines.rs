//! A body format: lines of JSON. A line with an object describes a type. Each line with an array is
//! a record of the type before it: timestamp, then fields.

use std::sync::Arc;

use baler::container::{BodyFormat, DecodeError, DecodeErrorKind, EncodeError, Limits};
use baler::record::FieldType::{Bool, F64, I32, I64, String, U64};
use baler::record::{BatchBuilder, DynamicRecord, Field, RecordBatch, Schema, Value, ValueRef};
use baler::transport::ContainerKind;
use serde_json::{Value as Json, json};

/// The format, for writers and readers.
pub const JSON_LINES: &dyn BodyFormat = &JsonLines;

/// The supported types of fields.
const TYPES: [baler::record::FieldType; 6] = [Bool, F64, I32, I64, String, U64];

#[derive(Debug)]
struct JsonLines;

impl BodyFormat for JsonLines {
    fn number(&self) -> u8 {
        0x80
    }

    fn name(&self) -> &'static str {
        "json lines"
    }

    fn serialize(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut line = |json: Json| out.extend_from_slice(format!("{json}\n").as_bytes());
        let mut current = None;
        for record in batch.records() {
            let schema = record.schema();
            if current != Some(schema) {
                let fields = schema.fields().iter();
                let fields = fields.map(|it| json!([it.name(), it.field_type().to_string()]));
                line(json!({"type": schema.name(), "fields": fields.collect::<Vec<_>>()}));
                current = Some(schema);
            }
            let mut values = vec![json!(record.timestamp())];
            for (field, (_, value)) in schema.fields().iter().zip(record.fields().values()) {
                values.push(to_json(value).ok_or_else(|| EncodeError::Unsupported {
                    container: ContainerKind::Native,
                    record: schema.name().into(),
                    field: field.name().into(),
                    field_type: field.field_type().to_string().into(),
                })?);
            }
            line(Json::Array(values));
        }
        Ok(())
    }

    fn deserialize(&self, body: &[u8], limits: &Limits) -> Result<RecordBatch, DecodeError> {
        let mut builder = BatchBuilder::new();
        let mut schema = None;
        for line in body.split_inclusive(|byte| *byte == b'\n') {
            let mut read = || match serde_json::from_slice(line).ok()? {
                Json::Array(values) if builder.len() < limits.records => {
                    let record = read_record(schema.as_ref()?, &values)?;
                    builder.push_dynamic(&record).ok()
                }
                json => read_schema(&json).map(|read| schema = Some(read)),
            };
            read().ok_or_else(|| DecodeError {
                offset: line.as_ptr().addr() - body.as_ptr().addr(),
                in_body: true,
                reading: "a line of JSON",
                kind: DecodeErrorKind::Malformed {
                    message: "neither a type, nor a record of the type before".into(),
                },
            })?;
        }
        Ok(builder.take())
    }
}

fn to_json(value: ValueRef<'_>) -> Option<Json> {
    match value {
        ValueRef::Bool(it) => Some(it.into()),
        // JSON has no infinite numbers.
        ValueRef::F64(it) => it.is_finite().then(|| it.into()),
        ValueRef::Signed(it) => Some(it.into()),
        ValueRef::String(it) => Some(it.into()),
        ValueRef::Unsigned(it) => Some(it.into()),
        _ => None,
    }
}

fn read_schema(json: &Json) -> Option<Arc<Schema>> {
    let field = |it: &Json| {
        let field_type = TYPES.into_iter().find(|known| it[1] == known.to_string())?;
        Some(Field::new(it[0].as_str()?, field_type))
    };
    let fields: Option<Vec<_>> = json["fields"].as_array()?.iter().map(field).collect();
    Schema::new(json["type"].as_str()?, fields?)
        .ok()
        .map(Arc::new)
}

fn read_record(schema: &Arc<Schema>, values: &[Json]) -> Option<DynamicRecord> {
    let (time, values) = values.split_first()?;
    let read = |(json, field): (&Json, &Field)| match field.field_type() {
        Bool => json.as_bool().map(Value::Bool),
        F64 => json.as_f64().map(Value::F64),
        I32 | I64 => json.as_i64().map(Value::Signed),
        U64 => json.as_u64().map(Value::Unsigned),
        _ => json.as_str().map(Value::from),
    };
    let values: Option<Vec<_>> = values.iter().zip(schema.fields()).map(read).collect();
    DynamicRecord::new(Arc::clone(schema), time.as_i64(), values?).ok()
}
