//! A crate outside Baler adds a body format: here lines of JSON.

use std::sync::Arc;

use baler_common::container::{
    BodyFormat, ChunkDecoder, ChunkSerializer as _, Compression, DecodeError, DecodeErrorKind,
    EncodeError, Limits, NativeSerializer,
};
use baler_common::record::{
    BatchBuilder, DynamicRecord, Field, FieldType, RecordBatch, Schema, Value, ValueRef,
};
use serde_json::{Map, Value as Json, json};

use crate::arbitrary;
use crate::native_chunks::header;

/// Records as lines of JSON, whose fields are text and numbers.
#[derive(Debug)]
struct JsonLines;

/// The format, as a crate would export it.
const JSON_LINES: &dyn BodyFormat = &JsonLines;

impl BodyFormat for JsonLines {
    fn number(&self) -> u8 {
        0x80
    }

    fn name(&self) -> &'static str {
        "json lines"
    }

    fn serialize(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        for record in batch.records() {
            let fields = record.fields().values().map(|(name, value)| {
                let value = match value {
                    ValueRef::String(text) => json!(text),
                    ValueRef::Unsigned(number) => json!(number),
                    _ => Json::Null,
                };
                (name.to_owned(), value)
            });
            let fields: Map<String, Json> = fields.collect();
            let line = json!([record.type_name(), record.timestamp(), fields]);
            out.extend_from_slice(line.to_string().as_bytes());
            out.push(b'\n');
        }
        Ok(())
    }

    fn deserialize(&self, body: &[u8], limits: &Limits) -> Result<RecordBatch, DecodeError> {
        let wrong = |kind| DecodeError {
            offset: 0,
            in_body: true,
            reading: "a line of JSON",
            kind,
        };
        let text = std::str::from_utf8(body).map_err(|_| wrong(DecodeErrorKind::Utf8))?;
        let mut builder = BatchBuilder::new();
        for line in text.lines().take(limits.records) {
            let record = read_line(line);
            let invalid = || wrong(DecodeErrorKind::Invalid { found: 0 });
            builder
                .push_dynamic(&record.ok_or_else(invalid)?)
                .map_err(|_| invalid())?;
        }
        Ok(builder.take())
    }
}

fn read_line(line: &str) -> Option<DynamicRecord> {
    let line: (String, Option<i64>, Map<String, Json>) = serde_json::from_str(line).ok()?;
    let (name, time, fields) = line;
    let mut values = Vec::new();
    let mut types = Vec::new();
    for (field, value) in fields {
        let (field_type, value) = match value {
            Json::String(text) => (FieldType::String, Value::from(text)),
            Json::Number(number) => (FieldType::U64, Value::Unsigned(number.as_u64()?)),
            _ => return None,
        };
        types.push(Field::new(field, field_type));
        values.push(value);
    }
    let schema = Arc::new(Schema::new(name, types).ok()?);
    DynamicRecord::new(schema, time, values).ok()
}

fn orders() -> Vec<DynamicRecord> {
    let fields = [("cents", FieldType::U64), ("customer", FieldType::String)];
    let fields = fields.map(|(name, kind)| Field::new(name, kind));
    let schema = Arc::new(Schema::new("shop.Order", fields).unwrap());
    let order = |number: u64| {
        let values = [Value::Unsigned(number * 100), Value::from("Ada")];
        let time = (number > 0).then_some(5);
        DynamicRecord::new(Arc::clone(&schema), time, values).unwrap()
    };
    (0..40).map(order).collect()
}

fn chunk(compression: Compression) -> Vec<u8> {
    let serializer = NativeSerializer::new(compression).unwrap();
    let mut serializer = serializer.with_format(JSON_LINES).unwrap();
    let mut chunk = Vec::new();
    let batch = arbitrary::batch(&orders());
    serializer
        .serialize(&batch, &header(1, 2), &mut chunk)
        .unwrap();
    chunk
}

#[test]
fn chunk_of_an_added_format_is_read_by_decoders_that_have_it() {
    for compression in crate::native_chunks::compressions() {
        let chunk = chunk(compression);
        let mut decoder = ChunkDecoder::default().with_format(JSON_LINES);
        let decoded = decoder.decode(&chunk).unwrap();
        assert_eq!(arbitrary::records_of(&decoded.batch), orders());
        assert_eq!(decoded.summary.format, "json lines");
        assert_eq!(decoded.summary.header, Some(header(1, 2)));
        assert_eq!(decoder.summarize(&chunk).unwrap(), decoded.summary);
        let unknown = ChunkDecoder::default().decode(&chunk).unwrap_err();
        let (what, number) = ("body format", 0x80);
        assert_eq!(unknown.kind, DecodeErrorKind::Unknown { what, number });
    }
}

#[test]
fn body_with_fewer_records_than_the_header_says_is_refused() {
    /// Loses a record.
    #[derive(Debug)]
    struct Forgetful;

    impl BodyFormat for Forgetful {
        fn number(&self) -> u8 {
            JSON_LINES.number()
        }
        fn name(&self) -> &'static str {
            "forgetful"
        }
        fn serialize(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
            JSON_LINES.serialize(batch, out)
        }
        fn deserialize(&self, body: &[u8], limits: &Limits) -> Result<RecordBatch, DecodeError> {
            let body = body.splitn(2, |byte| *byte == b'\n').last();
            JSON_LINES.deserialize(body.unwrap_or_default(), limits)
        }
    }

    let mut decoder = ChunkDecoder::default().with_format(&Forgetful);
    let error = decoder.decode(&chunk(Compression::None)).unwrap_err();
    let (declared, found) = (40, 39);
    assert_eq!(error.kind, DecodeErrorKind::Length { declared, found });
}

#[test]
fn numbers_of_own_formats_are_not_given_away() {
    /// Wants the number of the columnar format.
    #[derive(Debug)]
    struct Columnar;

    impl BodyFormat for Columnar {
        fn number(&self) -> u8 {
            1
        }
        fn name(&self) -> &'static str {
            "mine"
        }
        fn serialize(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
            JSON_LINES.serialize(batch, out)
        }
        fn deserialize(&self, body: &[u8], limits: &Limits) -> Result<RecordBatch, DecodeError> {
            JSON_LINES.deserialize(body, limits)
        }
    }

    let refused = NativeSerializer::default()
        .with_format(&Columnar)
        .map(drop)
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the body format mine has the number 1; use one from 128 to 255"
    );
    let mut chunk = Vec::new();
    let batch = arbitrary::batch(&orders());
    NativeSerializer::default()
        .serialize(&batch, &header(1, 2), &mut chunk)
        .unwrap();
    let mut decoder = ChunkDecoder::default().with_format(&Columnar);
    let decoded = decoder.decode(&chunk).unwrap();
    assert_eq!(decoded.summary.format, "columnar");
}
